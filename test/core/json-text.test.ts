import { describe, expect, test } from "bun:test";
import { parseJsonText } from "../../src/core/json-text.ts";
import { leastRatio } from "../support/fastest.ts";

describe("parseJsonText", () => {
  const GOOD: readonly (readonly [string, unknown])[] = [
    ["null", null],
    ['"a:b"', "a:b"],
    ["[]", []],
    ["{}", {}],
    ['{"a":1,"b":{"a":1}}', { a: 1, b: { a: 1 } }],
    ['[{"a":1},{"a":1}]', [{ a: 1 }, { a: 1 }]],
    ['{"a:":":","\\"":"\\":{"}', { "a:": ":", '"': '":{' }],
    ['{"\\\\":1}', { "\\": 1 }],
    [' { "a" : [ 1 , 2 ] } ', { a: [1, 2] }],
    ["9007199254740991", 9007199254740991],
  ];
  for (const [text, value] of GOOD) {
    test(`takes ${text}`, () => expect(parseJsonText(text)).toEqual({ value }));
  }

  const BAD: readonly (readonly [string, string])[] = [
    ["", "is not JSON"],
    ["{", "is not JSON"],
    ["{'a':1}", "is not JSON"],
    ["[1,]", "is not JSON"],
    ["NaN", "is not JSON"],
    ["1 2", "is not JSON"],
    ["\ufeff{}", "is not JSON"],
    ['{"a":1,"a":1}', "has the same key twice in one object"],
    ['[{"b":{"a":1,"a":2}}]', "has the same key twice in one object"],
    ['{"a":1,"\\u0061":2}', "has the same key twice in one object"],
    ['{"__proto__":1,"__proto__":2}', "has the same key twice in one object"],
    ['{"a:":1,"a:":":"}', "has the same key twice in one object"],
    ['"\\ud800"', "has a lone surrogate in a string"],
    ['{"a":[[],{"b":"\\udc00"}]}', "has a lone surrogate in a string"],
    ['{"a":{"b":[{}]},"c":[-1e999]}', "has a number that is out of range"],
    ['{"__proto__":{"\\ud800":1}}', "has a lone surrogate in a key"],
    ['{"\\udc00":1}', "has a lone surrogate in a key"],
    ["[1e999]", "has a number that is out of range"],
    // It would be read as …992: a clause would ask for a number that nobody wrote.
    ["9007199254740993", "has a number that is out of range"],
    ["-9007199254740992", "has a number that is out of range"],
    ["1".padEnd(64, "0"), "has a number that is out of range"],
    [`${"[".repeat(65)}${"]".repeat(65)}`, "is nested deeper than 64"],
  ];
  for (const [text, problem] of BAD) {
    test(`refuses ${JSON.stringify(text.slice(0, 40))}`, () =>
      expect(parseJsonText(text)).toEqual({ problem }));
  }

  test("a million scalars take little more time than their parsing", () => {
    const text = `[${"1,".repeat(520_000)}1]`;
    const read = () => expect(parseJsonText(text)).toHaveProperty("value");
    // It is 1.7 times, and more than 3 where scalars are collected.
    expect(leastRatio(read, () => JSON.parse(text))).toBeLessThan(2.5);
  });

  test("takes 64 levels, and refuses very many without an exception", () => {
    expect(parseJsonText(`${"[".repeat(64)}${"]".repeat(64)}`)).toHaveProperty("value");
    expect(parseJsonText(`${"[".repeat(500_000)}${"]".repeat(500_000)}`)).toHaveProperty("problem");
  });
});
