import { hasHiddenCharacters, NOTHING_HIDDEN } from "./hidden-characters.ts";

/** The longest URL that is fetched, in characters. */
export const URL_LENGTH_MAX = 2_048;

/** Whether a URL that was checked is https. */
export const isHttps = (url: string): boolean => new URL(url).protocol === "https:";

/** The problem with a URL that a caller wants fetched, or null. It must be http or https, short, and without credentials. */
export function checkSourceUrl(text: string): string | null {
  if (text.length > URL_LENGTH_MAX) return `must be at most ${URL_LENGTH_MAX} characters`;
  // The parser removes control characters and blanks: the URL that is fetched would not be the one that was written.
  if (hasHiddenCharacters(text)) return `must be an http or https URL, ${NOTHING_HIDDEN}`;
  if (text.includes(" ") || !/^https?:\/\//i.test(text)) return "must be an http or https URL";
  const url = URL.parse(text);
  if (url === null || url.hostname === "") return "must be an http or https URL";
  return url.username === "" && url.password === "" ? null : "must not carry credentials";
}
