import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { compileIRegexp, compilePattern, PatternProblem } from "../../../src/core/clauses/pattern.ts";

/** Random patterns of ECMA-262 that can be matched in linear time. */
const CHARACTERS = [
  "a",
  "b",
  "A",
  "z",
  "0",
  "9",
  "_",
  "-",
  " ",
  "\n",
  "\r",
  "é",
  "ſ",
  "K",
  "\u2028",
  "\ufeff",
  "😀",
  "/",
];
const ESCAPES = [
  ..."dDwWsS".split("").map((letter) => `\\${letter}`),
  ...[
    "\\n",
    "\\t",
    "\\v",
    "\\0",
    "\\x41",
    "\\u0061",
    "\\u{1F600}",
    "\\uD83D\\uDE00",
    "\\cJ",
    "\\/",
    "\\.",
    "\\-",
  ],
  ...[
    "\\p{L}",
    "\\P{L}",
    "\\p{Lu}",
    "\\p{Letter}",
    "\\p{Nd}",
    "\\p{P}",
    "\\p{Zs}",
    "\\p{gc=Ll}",
    "\\p{Script=Greek}",
  ],
];
const inClass = (text: string): boolean => text !== "\\.";
const outsideClass = (text: string): boolean => text !== "\\-";

const literal = fc.constantFrom(...CHARACTERS.map((character) => (character === "/" ? "\\/" : character)));
const classMember = fc.oneof(
  fc.constantFrom("a", "b", "_", "é", "😀", " ", "[:", "&", "~", "|", "(", "^a"),
  fc.constantFrom("a-f", "0-9", "A-z", "\\x20-\\x7e", "😀-😂", "\\u{1F600}-\\u{1F64F}"),
  fc.constantFrom(...ESCAPES.filter(inClass), "\\b", "\\]", "\\^"),
);
const characterClass = fc
  .tuple(fc.constantFrom("", "^"), fc.array(classMember, { maxLength: 4 }))
  .map(([negation, members]) => `[${negation}${members.join("")}]`);
const { pattern: anyPattern } = fc.letrec<{ pattern: string; term: string; atom: string }>((tie) => ({
  atom: fc.oneof(
    { depthSize: "small" },
    literal,
    fc.constantFrom(".", "^", "$", "\\b", "\\B"),
    fc.constantFrom(...ESCAPES.filter(outsideClass)),
    characterClass,
    tie("pattern").map((inner) => `(${inner})`),
    tie("pattern").map((inner) => `(?:${inner})`),
  ),
  term: fc
    .tuple(tie("atom"), fc.constantFrom("", "", "*", "+", "?", "*?", "{2}", "{0,2}", "{1,}?"))
    .map(([atom, times]) => (/^(\^|\$|\\b|\\B)$/.test(atom) ? atom : atom + times)),
  pattern: fc
    .array(fc.array(tie("term"), { maxLength: 4 }), { minLength: 1, maxLength: 3 })
    .map((alternatives) => alternatives.map((terms) => terms.join("")).join("|")),
}));
const texts = fc
  .array(fc.constantFrom(...CHARACTERS, "α", ".", "[", ":", "\u00a0"), { maxLength: 5 })
  .map((all) => all.join(""));

/** JavaScript's engine may try every way to share a text among the loops of a pattern, for many seconds where there are dozens. */
const LOOPS_MAX = 8;

/**
 * A random class may be invalid, such as one with a range from high to low. Those are left out, and what has too many loops for
 * JavaScript's engine.
 */
function nativeOf(source: string): RegExp | null {
  if ((source.match(/[*+{]/g) ?? []).length > LOOPS_MAX) return null;
  try {
    return new RegExp(source, "u");
  } catch {
    return null;
  }
}

describe("compilePattern", () => {
  test("matches what JavaScript's own regular expressions match", () => {
    const property = fc.property(
      anyPattern,
      fc.array(texts, { minLength: 1, maxLength: 6 }),
      (source, all) => {
        const native = nativeOf(source);
        fc.pre(native !== null);
        const pattern = compilePattern(source);
        for (const text of all) {
          const started = performance.now();
          const expected = native?.test(text);
          // JavaScript's own engine gives up with `false` on what it cannot finish. That is why it is not used.
          if (performance.now() - started < 20)
            expect([source, text, pattern.test(text)]).toEqual([source, text, expected]);
        }
      },
    );
    fc.assert(property, { numRuns: 1_000 });
  });

  test.each([
    ["^(a+)+$", `${"a".repeat(50_000)}b`],
    ["^(a|a)*$", `${"a".repeat(50_000)}b`],
    ["(x+x+)+y", "x".repeat(50_000)],
    ["^(([a-z])+.)+[A-Z]([a-z])+$", "a".repeat(50_000)],
  ])("%s does not backtrack", (source, text) => {
    const started = performance.now();
    expect(compilePattern(source).test(text)).toBe(false);
    expect(performance.now() - started).toBeLessThan(1_000);
  });

  test.each([
    ["(?=a)", "look-arounds"],
    ["(?!a)", "look-arounds"],
    ["(?<=a)b", "look-arounds"],
    ["(?<!a)b", "look-arounds"],
    ["(a)\\1", "backreferences"],
    ["(?<n>a)\\k<n>", "backreferences"],
    ["(?i:a)", "inline flags"],
    ["a{1001}", "too large"],
    ["((a{100}){100}){100}", "too large"],
    ["\\p{Emoji}", "property Emoji"],
    ["\\p{Script_Extensions=Greek}", "property Script_Extensions"],
    ["(", "not a regular expression"],
    ["a**", "not a regular expression"],
    ["\\q", "not a regular expression"],
  ])("refuses %p", (source, words) => {
    expect(() => compilePattern(source)).toThrow(PatternProblem);
    expect(() => compilePattern(source)).toThrow(words);
  });

  test("refuses a pattern of more than 4,096 characters", () => {
    expect(() => compilePattern("a".repeat(4_097))).toThrow("more than 4096 characters");
    expect(compilePattern("a".repeat(4_096)).test("a")).toBe(false);
  });

  test("has its source as its text, since Ajv distinguishes patterns by it", () => {
    expect(String(compilePattern("^a$"))).toBe("^a$");
  });

  test("`match` takes whole texts only, and its dot every character but line feeds and returns", () => {
    expect(compileIRegexp("a|ab", "match")?.test("ab")).toBe(true);
    expect(compileIRegexp("a", "match")?.test("ab")).toBe(false);
    expect(compileIRegexp("a", "search")?.test("bab")).toBe(true);
    expect(compileIRegexp("^.$", "search")?.test("\u2028")).toBe(true);
    expect(compilePattern("^.$").test("\u2028")).toBe(false);
  });
});
