/** Longest URL that is fetched, in characters (decisions.md, Verification). */
export const URL_LENGTH_MAX = 2_048;

/** What is wrong with a URL that a caller wants fetched, or null: http or https, 2,048 characters, no credentials. */
export function checkSourceUrl(text: string): string | null {
  if (text.length > URL_LENGTH_MAX) return `must be at most ${URL_LENGTH_MAX} characters`;
  // The parser drops control characters and blanks: what is fetched would not be what was written.
  const printable = [...text].every((character) => character > " " && character !== "\u007f");
  if (!printable || !/^https?:\/\//i.test(text)) return "must be an http or https URL";
  const url = URL.parse(text);
  if (url === null || url.hostname === "") return "must be an http or https URL";
  return url.username === "" && url.password === "" ? null : "must not carry credentials";
}
