import { expect, test } from "bun:test";
import { csvLine } from "../../src/core/csv.ts";

const cellOf = (text: string): string => csvLine([text]).replace(/\r\n$/, "");

test("a text that a spreadsheet would take for a formula gets an apostrophe in front", () => {
  for (const begin of ["=", "+", "-", "@", " =", "\u00a0=", "\u3000+", "＝", "＋", "－", "＠"])
    expect([begin, cellOf(`${begin}1+1`)]).toEqual([begin, `'${begin}1+1`]);
  for (const text of ["1=1", "a-b", "a@b.example", "'=1", "a;b", "a, b;c", "-15"])
    expect([text, cellOf(text).replace(/^"(.*)"$/, "$1")]).toEqual([text, text]);
});

test("so does what would begin a cell where the separator is a semicolon", () => {
  expect(cellOf("x;=1+1;")).toBe("x;'=1+1;");
  expect(cellOf("x; @y;;-z")).toBe("x;' @y;;'-z");
  expect(cellOf('x;"=1')).toBe(`"x;'""=1"`);
});

test("a comma, a quotation mark and a line break are quoted, and numbers are left as they are", () => {
  expect(csvLine(["a,b", 'c"d', "e\nf", -5n, 7, null])).toBe('"a,b","c""d","e\nf",-5,7,\r\n');
});
