import { expect, test } from "bun:test";
import {
  hasHiddenCharacters,
  PLAIN_TEXT_PATTERN,
  printable,
  printableLines,
} from "../../src/core/hidden-characters.ts";

/** The characters that are refused, written down once more: first and last of each range. */
const REFUSED: readonly (readonly [first: number, last: number])[] = [
  [0x00, 0x1f],
  [0x7f, 0x9f],
  [0x200b, 0x200b],
  [0x200e, 0x200f],
  [0x202a, 0x202e],
  [0x2060, 0x2060],
  [0x2066, 0x2069],
  [0xfeff, 0xfeff],
];
const isRefused = (code: number) => REFUSED.some(([first, last]) => code >= first && code <= last);
const BMP = Array.from({ length: 0x10000 }, (_, code) => code);

test("hidden are the controls, the marks of direction, and what has no width; the joiners are not", () => {
  const pattern = new RegExp(PLAIN_TEXT_PATTERN);
  for (const code of BMP) {
    const text = `a${String.fromCharCode(code)}b`;
    expect([code, hasHiddenCharacters(text), pattern.test(text)]).toEqual([
      code,
      isRefused(code),
      !isRefused(code),
    ]);
  }
  for (const text of ["می\u200cخواهم", "क्\u200dष", "👩\u200d🚀", "𝒜", ""])
    expect(hasHiddenCharacters(text)).toBe(false);
});

test("all of them are escaped where text is printed, and nothing else but separators and one more mark", () => {
  const shown = BMP.filter((code) => printable(String.fromCharCode(code)) !== String.fromCharCode(code));
  expect(shown).toEqual(BMP.filter((code) => isRefused(code) || [0x061c, 0x2028, 0x2029].includes(code)));
  expect(printable("a\u001b[31m\n\u009b\u202e")).toBe("a\\u001b[31m\\u000a\\u009b\\u202e");
});

test("JSON is printed with the same values", () => {
  const value = { "name\u202e": `\u001b\u007f\u009b2J\u202e\ufeff\n\\u202e "\u2028` };
  for (const json of [JSON.stringify(value), JSON.stringify(value, null, 2)]) {
    const printed = printableLines(json);
    expect(JSON.parse(printed)).toEqual(value);
    expect(printed.replaceAll("\n", "")).toMatch(/^[\x20-\x7e]*$/);
    expect(printed.split("\n").length).toBe(json.split("\n").length);
  }
});
