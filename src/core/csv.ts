/**
 * A line of CSV (RFC 4180), with its end. A text that a spreadsheet would take for a formula gets an apostrophe in front: whoever
 * chose a payee must not run anything where its list is opened. A whole number, also a negative one, is no formula.
 */
export const csvLine = (values: readonly (string | bigint | number | null)[]): string =>
  `${values.map((value) => (typeof value === "string" ? textOf(value) : String(value ?? ""))).join(",")}\r\n`;

/**
 * Where a formula begins: at the beginning, and after a semicolon, which is the separator where the comma is a decimal point.
 * White space and quotation marks may be left out by a spreadsheet, and full-width signs count as the others. A negative number is
 * left as it is.
 */
const FORMULAS = /(?<=^|[;\t])(?!-\d+$)(?=[\s"]*[=+\-@＝＋－＠\t\r])/g;
/** Most texts have none: to look for that is faster than to replace. */
const MAY_HAVE_FORMULAS = /^[\s"]*[=+\-@＝＋－＠]|[;\t\r]/;
const NEEDS_QUOTES = /[",\r\n]/;

function textOf(text: string): string {
  const safe = MAY_HAVE_FORMULAS.test(text) ? text.replace(FORMULAS, "'") : text;
  return NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
