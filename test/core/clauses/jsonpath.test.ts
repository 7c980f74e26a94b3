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

test("a descent into a document of more than 512 levels throws", () => {
  let deep: unknown = 1;
  for (let level = 0; level < 600; level++) deep = [deep];
  expect(() => [...select("$..a", deep)]).toThrow();
});
