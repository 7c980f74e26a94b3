import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { jsonEquals } from "../../../src/core/clauses/document.ts";
import { parseJsonPath, select } from "../../../src/core/clauses/jsonpath.ts";
import { fastestMs } from "../../support/fastest.ts";

/**
 * The public compliance suite of RFC 9535. It is not copied into the project. These tests read it from a
 * folder beside the repository, and are skipped where it is missing.
 */
const SUITE = join(import.meta.dir, "../../../../shared/data/jsonpath-cts.json");

type Case = {
  name: string;
  selector: string;
  invalid_selector?: boolean;
  document: unknown;
  result?: unknown[];
  results?: unknown[][];
};

describe("the JSONPath compliance suite", () => {
  if (!existsSync(SUITE)) {
    test.skip(`is not at ${SUITE}: skipped`, () => {});
    return;
  }
  const { tests } = JSON.parse(readFileSync(SUITE, "utf8")) as { tests: Case[] };

  test("has its cases", () => expect(tests.length).toBeGreaterThan(600));

  test.each(tests.filter((one) => one.invalid_selector).map((one) => [one.name, one] as const))(
    "refuses: %s",
    (_, one) => {
      expect(parseJsonPath(one.selector)).toBeString();
    },
  );

  test.each(tests.filter((one) => !one.invalid_selector).map((one) => [one.name, one] as const))(
    "selects: %s",
    (_, one) => {
      expect(parseJsonPath(one.selector)).toBeNull();
      const selected = [...select(one.selector, one.document)];
      const allowed = one.results ?? [one.result];
      expect(allowed.some((result) => jsonEquals(result, selected))).toBe(true);
    },
  );
});

describe("a path", () => {
  test.each([
    "",
    "$[",
    "$.",
    "$..",
    "a",
    "@",
    "$ ",
    " $",
    "$[?]",
    "$[?(@.a=~/x/)]",
    "$.a()",
    "$[(@.length-1)]",
    "$`",
  ])("%p is refused", (path) => expect(parseJsonPath(path)).toBeString());

  test.each([
    ["$.a-b", `a name after a point has no "-": ['a-b'] is how it is written`],
    ["$[?@.a-1==0]", `a name after a point has no "-": ['a-1'] is how it is written`],
    ["$[0:1 2]", "nothing between 1 and 2"],
    ["$[?count(@.*,)>0]", "no argument after a comma"],
  ])("%p is refused, and what is wrong is said", (path, problem) =>
    expect(parseJsonPath(path)).toBe(`is not a JSONPath of RFC 9535: ${problem}`),
  );

  test("is refused above 1,024 characters", () => {
    expect(parseJsonPath(`$.${"a".repeat(1_022)}`)).toBeNull();
    expect(parseJsonPath(`$.${"a".repeat(1_023)}`)).toBe("must be at most 1024 characters");
  });

  test("is parsed at once, however it is nested", () => {
    const nested = [`$[?${"(".repeat(500)}@.a${")".repeat(500)}]`, `$${"[?@".repeat(250)}${"]".repeat(250)}`];
    const parse = (): void => {
      for (const path of nested) expect(parseJsonPath(path)).toBeNull();
    };
    expect(fastestMs(parse)).toBeLessThan(500);
  });

  test("finds an object's own members only, not inherited ones", () => {
    for (const path of ["$.constructor", "$.__proto__", "$.toString", "$['length']", "$.a.length"])
      expect([...select(path, { a: "text" })]).toEqual([]);
  });

  test("measures texts in characters, not in UTF-16 units", () => {
    expect([...select("$[?length(@) == 2]", ["😀😀", "ab", "abc"])]).toEqual(["😀😀", "ab"]);
  });
});

describe("match() and search()", () => {
  test.each([
    ["$[?match(@, 'a+')]", ["a", "aa"]],
    ["$[?search(@, 'a')]", ["a", "aa", "bab", "a\nb"]],
    ["$[?match(@, 'a.b')]", []],
    ["$[?!match(@, '[ab]+')]", ["a\nb", "", 1]],
    ["$[?match(@, '\\\\p{Ll}+')]", ["a", "aa", "bab"]],
    ["$[?match(@, '(?=a)a')]", []],
    ["$[?match(@, '(')]", []],
    ["$[?match(@, '')]", [""]],
  ])("%s", (path, expected) => {
    expect([...select(path, ["a", "aa", "bab", "a\nb", "", 1])]).toEqual(expected);
  });

  // A pattern that RFC 9485 allows must be tried: `!match(…)` passes where it is taken for none.
  test.each<[string, string, boolean]>([
    ["it's", "it's", true],
    ["😀", "😀", true],
    ["[😀-😂]", "😁", true],
    ["[^😀]", "😀", false],
    ["a\\-b", "a-b", true],
    ["[\\-]", "-", true],
    ["[,]", ",", true],
    ["[a-]", "-", true],
    ["[-a]", "-", true],
    ["[^-]", "-", false],
    ["a\\{\\}\\|", "a{}|", true],
    ["a{01}", "a", true],
    ["(a|(b)){2,}", "abb", true],
    ["\\P{Lu}\\p{Lu}", "aA", true],
    ["\\n\\t", "\n\t", true],
    ["^a$", "a", true],
    ["[a^$.]", "^", true],
    // These are not I-Regexps.
    ["[a-b-c]", "b", false],
    ["[--a]", "a", false],
    ["[]", "", false],
    ["\\d", "1", false],
    ["\\p{Latin}", "a", false],
    ["(a", "(a", false],
    ["a)", "a)", false],
    ["a**", "a", false],
    ["*", "*", false],
    ["a{,2}", "a", false],
    ["a]", "a]", false],
    ["a\\", "a\\", false],
    ["(?:a)", "a", false],
    ["\\ud800", "x", false],
  ])("match(%p) of %p: %p", (pattern, text, expected) => {
    const document = { pattern, text };
    expect([...select("$[?match(@, $.pattern)]", document)].includes(text)).toBe(expected);
    expect([...select("$[?!match(@, $.pattern)]", document)].includes(text)).toBe(!expected);
  });

  test.each(["a{1001}", "(a{100}){11}", "a{2,1}", "[z-a]"])(
    "what cannot be matched is refused in a path, and throws in a document: %p",
    (pattern) => {
      const path = `$[?!search(@, '${pattern}')]`;
      expect(parseJsonPath(path)).toStartWith("has a pattern that is too large or not supported");
      expect(() => [...select("$[?!search(@, $[0])]", [pattern])]).toThrow();
    },
  );

  test("a pattern of a document has at most 4,096 characters", () => {
    expect([...select("$[?search(@, $[0])]", ["a".repeat(4_096)])]).toHaveLength(1);
    expect(() => [...select("$[?!search(@, $[0])]", ["a".repeat(4_097)])]).toThrow();
  });

  test("do not backtrack: a negated match must not pass because the engine gave up", () => {
    const match = (): void => {
      expect([...select("$[?!match(@, '(a+)+b')]", [`${"a".repeat(20_000)}b`])]).toEqual([]);
      expect([...select("$[?search(@, '(a|a)*c')]", ["a".repeat(20_000)])]).toEqual([]);
    };
    expect(fastestMs(match)).toBeLessThan(1_000);
  });

  test("throw on a pattern beyond the limits: a negated match must not pass by it", () => {
    expect(() => [...select("$[?!match(@, 'a{1001}')]", ["b"])]).toThrow();
  });
});

describe("a comparison", () => {
  test("is of code points, not of UTF-16 units", () => {
    const texts = ["\ue000", "a", "", "\ud83d", "😁", "😀", "😀a"];
    expect([...select("$[?@ < '😀']", texts)]).toEqual(["\ue000", "a", "", "\ud83d"]);
    expect([...select("$[?@ >= '😀']", texts)]).toEqual(["😁", "😀", "😀a"]);
    expect([...select("$[?@ <= '']", texts)]).toEqual([""]);
  });

  test("never takes an array for an object", () => {
    const pairs = [
      [{}, []],
      [{ "0": 1 }, [1]],
      [[1], { "0": 1 }],
    ];
    expect([...select("$[?@[0] == @[1]]", pairs)]).toEqual([]);
    expect([...select("$[?@[0] != @[1]]", pairs)]).toEqual(pairs);
  });

  test("of nothing with nothing is equal, of nothing with null is not", () => {
    expect([...select("$[?@.a == @.b]", [{}, { a: null }, { a: 1, b: 1 }])]).toEqual([{}, { a: 1, b: 1 }]);
    expect([...select("$[?@.a <= @.b]", [{}, { a: null, b: null }])]).toEqual([{}, { a: null, b: null }]);
    expect([...select("$[?length(@) == length(@.a)]", [1])]).toEqual([1]);
  });
});

test("an escape may name a control character, which may not stand there itself", () => {
  const document = { "\u0000": 1, "\u001f": 2 };
  expect([...select("$['\\u0000', \"\\u001F\"]", document)]).toEqual([1, 2]);
  expect(parseJsonPath("$['\u0000']")).toBeString();
  expect(parseJsonPath("$['\\u00']")).toBeString();
});

test("numbers are those of the grammar", () => {
  expect([...select("$[?@ == 0.5 || @ == 0e1 || @ == 0.1e1]", [0, 0.5, 1, 2])]).toEqual([0, 0.5, 1]);
  for (const number of ["01", "-01", "00", ".5", "1."])
    expect(parseJsonPath(`$[?@ == ${number}]`)).toBeString();
});

test("what is negated or in brackets is not compared, and no argument", () => {
  const wrong = ["!@ == 1", "1 == !@", "(@.a) == 1", "1 == (@.a)", "1 == 1 == 1", "(@ == 1) == (@ == 2)"];
  for (const filter of [
    ...wrong,
    "!!@",
    "! !@",
    "length((@)) == 1",
    "(1)",
    "!1",
    "!true",
    "!length(@)",
    "(length(@))",
    "@.a && length(@)",
  ])
    expect([filter, parseJsonPath(`$[?${filter}]`)]).toEqual([filter, expect.any(String)]);
  for (const filter of ["!(!@)", "!(@ == 1)", "((@ == 1))", "!(@.a && !@.b)", "(@.a)", "@.a && (@.b || @.c)"])
    expect([filter, parseJsonPath(`$[?${filter}]`)]).toEqual([filter, null]);
});

test("a descent into a document of more than 512 levels throws", () => {
  let deep: unknown = 1;
  for (let level = 0; level < 600; level++) deep = [deep];
  expect(() => [...select("$..a", deep)]).toThrow();
});
