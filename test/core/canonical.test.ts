import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import fc from "fast-check";
import { canonicalJson, hashJson, sha256 } from "../../src/core/canonical.ts";

describe("canonicalJson, by the examples of RFC 8785", () => {
  test("3.2.2: literals, numbers and strings", () => {
    const value = JSON.parse(String.raw`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }`);
    const string = String.raw`$\u000f\nA'B\"\\\\\"/`;
    expect(canonicalJson(value)).toBe(
      `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€${string}"}`,
    );
  });

  test("3.2.3: keys in the order of their UTF-16 code units", () => {
    const value = {
      "\u20ac": "Euro Sign",
      "\r": "Carriage Return",
      "\ufb33": "Hebrew Letter Dalet With Dagesh",
      "1": "One",
      "\ud83d\ude00": "Emoji: Grinning Face",
      "\u0080": "Control",
      "\u00f6": "Latin Small Letter O With Diaeresis",
    };
    const ordered = [...canonicalJson(value).matchAll(/:"([^"]+)"/g)].map(([, name]) => name);
    expect(ordered).toEqual([
      "Carriage Return",
      "One",
      "Control",
      "Latin Small Letter O With Diaeresis",
      "Euro Sign",
      "Emoji: Grinning Face",
      "Hebrew Letter Dalet With Dagesh",
    ]);
  });

  test("3.2.4: its bytes are UTF-8", () => {
    const hex = "7b22737472696e67223a22e282ac245c7530303066227d";
    expect(Buffer.from(canonicalJson({ string: "\u20ac$\u000f" })).toString("hex")).toBe(hex);
  });

  // Appendix B: the bits of an IEEE 754 double, and its text.
  const NUMBERS: readonly (readonly [bits: string, text: string])[] = [
    ["0000000000000000", "0"],
    ["8000000000000000", "0"],
    ["0000000000000001", "5e-324"],
    ["8000000000000001", "-5e-324"],
    ["7fefffffffffffff", "1.7976931348623157e+308"],
    ["ffefffffffffffff", "-1.7976931348623157e+308"],
    ["4340000000000000", "9007199254740992"],
    ["c340000000000000", "-9007199254740992"],
    ["4430000000000000", "295147905179352830000"],
    ["44b52d02c7e14af5", "9.999999999999997e+22"],
    ["44b52d02c7e14af6", "1e+23"],
    ["44b52d02c7e14af7", "1.0000000000000001e+23"],
    ["444b1ae4d6e2ef4e", "999999999999999700000"],
    ["444b1ae4d6e2ef4f", "999999999999999900000"],
    ["444b1ae4d6e2ef50", "1e+21"],
    ["3eb0c6f7a0b5ed8c", "9.999999999999997e-7"],
    ["3eb0c6f7a0b5ed8d", "0.000001"],
    ["41b3de4355555553", "333333333.3333332"],
    ["41b3de4355555554", "333333333.33333325"],
    ["41b3de4355555555", "333333333.3333333"],
    ["41b3de4355555556", "333333333.3333334"],
    ["41b3de4355555557", "333333333.33333343"],
    ["becbf647612f3696", "-0.0000033333333333333333"],
    ["43143ff3c1cb0959", "1424953923781206.2"],
  ];
  for (const [bits, text] of NUMBERS) {
    test(`Appendix B: ${bits} is ${text}`, () => {
      expect(canonicalJson(Buffer.from(bits, "hex").readDoubleBE())).toBe(text);
    });
  }

  const STRINGS: readonly (readonly [value: string, text: string])[] = [
    ["\b\t\n\f\r", String.raw`"\b\t\n\f\r"`],
    ["\u0000\u001f", String.raw`"\u0000\u001f"`],
    ['"\\/', String.raw`"\"\\/"`],
    ["\u007f\u0080\u2028\u2029", '"\u007f\u0080\u2028\u2029"'],
    ["é", '"é"'],
    ["e\u0301", '"e\u0301"'],
    ["\u{1f600}", '"\u{1f600}"'],
  ];
  for (const [value, text] of STRINGS) {
    test(`3.2.2.2: a string is ${JSON.stringify(text)}`, () => expect(canonicalJson(value)).toBe(text));
  }

  const NOT_JSON: readonly (readonly [name: string, value: unknown])[] = [
    ["NaN", Number.NaN],
    ["Infinity", [Number.POSITIVE_INFINITY]],
    ["-Infinity", { a: Number.NEGATIVE_INFINITY }],
    ["a lone high surrogate", "\ud83d"],
    ["a lone low surrogate in a key", { "\ude00": 1 }],
    ["undefined", undefined],
    ["a function", () => 1],
    ["a bigint", { amount: 1n }],
  ];
  for (const [name, value] of NOT_JSON) {
    test(`refuses ${name}`, () => expect(() => canonicalJson(value)).toThrow());
  }

  test("refuses a cycle", () => {
    const cycle: unknown[] = [];
    cycle.push({ cycle });
    expect(() => canonicalJson(cycle)).toThrow();
  });
});

/** The same value with the keys of every object turned around. */
const reversed = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, child]) => [key, reversed(child)]),
  );
};

describe("of any JSON value", () => {
  const values = fc.jsonValue({ stringUnit: "grapheme-composite" });

  test("the text is the same in whatever order its keys came", () => {
    fc.assert(
      fc.property(values, (value) => {
        expect(canonicalJson(reversed(value))).toBe(canonicalJson(value));
        expect(hashJson(reversed(value))).toBe(hashJson(value));
      }),
    );
  });

  test("the text is the package's, whatever the keys are", () => {
    const key = fc.oneof(
      fc.constantFrom("10", "9", "-1", "__proto__", "toJSON", "constructor", "", "a", "é", "amount"),
      fc.string({ unit: "grapheme-composite" }),
    );
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 5 },
        fc.jsonValue({ maxDepth: 0, stringUnit: "grapheme-composite" }),
        fc.array(tie("tree")),
        fc.dictionary(key, tie("tree")),
      ),
    }));
    fc.assert(fc.property(tree, (value) => expect(canonicalJson(value)).toBe(canonicalize(value) ?? "")));
  });

  test("the text reads back as the value, and is its own canonical form", () => {
    fc.assert(
      fc.property(values, (value) => {
        const text = canonicalJson(value);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
        expect(canonicalJson(JSON.parse(text))).toBe(text);
      }),
    );
  });

  test("the hash is that of the text's UTF-8", () => {
    fc.assert(
      fc.property(values, (value) => {
        const expected = createHash("sha256")
          .update(Buffer.from(canonicalJson(value), "utf8"))
          .digest("hex");
        expect(hashJson(value)).toBe(expected);
      }),
    );
  });
});

describe("sha256", () => {
  const TABLE: readonly (readonly [data: string, digest: string])[] = [
    ["", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
    ["abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],
  ];
  for (const [data, digest] of TABLE) {
    test(`of ${JSON.stringify(data)}, as text and as bytes, is lower-case hex without a prefix`, () => {
      expect(sha256(data)).toBe(digest);
      expect(sha256(Buffer.from(data))).toBe(digest);
    });
  }

  test("takes bytes as they are, UTF-8 or not", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(sha256(bytes)).toBe(createHash("sha256").update(bytes).digest("hex"));
      }),
    );
  });
});
