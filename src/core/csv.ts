/**
 * A line of CSV (RFC 4180), with its end. A text that a spreadsheet would take for a formula gets an apostrophe in front: whoever
 * chose a payee must not run anything where its list is opened. A whole number, also a negative one, is no formula.
 */
export const csvLine = (values: readonly (string | bigint | number | null)[]): string =>
  `${values.map((value) => (typeof value === "string" ? textOf(value) : String(value ?? ""))).join(",")}\r\n`;

const FORMULA = /^(?!-\d+$)[=+\-@\t\r]/;
const NEEDS_QUOTES = /[",\r\n]/;

function textOf(text: string): string {
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
