import { describe, expect, test } from "bun:test";
import { Value } from "@sinclair/typebox/value";
import fc from "fast-check";
import { REASON_CODES } from "../../../src/core/clauses/reason-codes.ts";
import {
  CLAUSE_KINDS,
  clauseModels,
  clauseTemplates,
  isClauseKind,
  parseClause,
  parseClauses,
  refuseJsonPath,
  schemaNamesOf,
} from "../../../src/core/clauses/registry.ts";
import { isRefusal } from "../../../src/core/errors.ts";

const DIGEST = "0123456789abcdefABCDEF".padEnd(64, "0");

const VALID: readonly Record<string, unknown>[] = [
  { kind: "http.status", equals: 200 },
  { kind: "json.schema", schema: "invoice" },
  { kind: "json.jsonpath", path: "$.a" },
  { kind: "json.jsonpath", path: "$.a", equals: null },
  { kind: "json.jsonpath", path: "$.a", equals: false },
  { kind: "json.jsonpath", path: "$..a[?@.b == 'c']", equals: { deep: [1, "x", { y: null }] } },
  { kind: "file.sha256", digest: DIGEST },
  { kind: "data.freshness", maxAgeSeconds: 1 },
  { kind: "uptime.window", windowSeconds: 60, minRatio: 0 },
  { kind: "chain.event", topic: "Transfer" },
  { kind: "llm.judge", rubric: "Is it good?", minScore: 1 },
];

describe("the registry", () => {
  test("has these eight kinds and no other", () => {
    expect(CLAUSE_KINDS).toEqual([
      "http.status",
      "json.schema",
      "json.jsonpath",
      "file.sha256",
      "data.freshness",
      "uptime.window",
      "chain.event",
      "llm.judge",
    ]);
    expect(clauseTemplates.map((template) => template.kind)).toEqual([...CLAUSE_KINDS]);
    expect(clauseTemplates.every((template) => template.description.length > 10)).toBe(true);
    expect(isClauseKind("toString")).toBe(false);
  });

  test("has models that take what parseClause takes", () => {
    for (const clause of VALID) {
      const model = clauseModels[clause.kind as keyof typeof clauseModels];
      expect([clause, Value.Check(model, clause)]).toEqual([clause, true]);
      expect(Value.Check(model, { ...clause, extra: 1 })).toBe(false);
    }
  });
});

describe("parseClause", () => {
  test.each(VALID)("takes %j as it is given", (clause) => {
    expect(parseClause(clause, "config")).toEqual(clause as never);
  });

  test("takes a saved verifier's type and config", () => {
    expect(parseClause({ kind: "http.status", ...{ equals: 201 } }, "config")).toEqual({
      kind: "http.status",
      equals: 201,
    });
  });

  const kinds = CLAUSE_KINDS.join(", ");
  test.each([
    [null, "c: must be an object"],
    [[], "c: must be an object"],
    ["http.status", "c: must be an object"],
    [{}, `c.kind: must be one of ${kinds}`],
    [{ kind: "plugin" }, `c.kind: must be one of ${kinds}`],
    [{ kind: "constructor" }, `c.kind: must be one of ${kinds}`],
    [{ kind: 1 }, `c.kind: must be one of ${kinds}`],
    [{ kind: "http.status" }, "c.equals: is required, and must be an integer"],
    [{ kind: "http.status", equals: "200" }, "c.equals: must be an integer"],
    [{ kind: "http.status", equals: 200.5 }, "c.equals: must be an integer"],
    [{ kind: "http.status", equals: Number.NaN }, "c.equals: must be an integer"],
    [{ kind: "http.status", equals: 200, extra: 1 }, "c.extra: is not a field of http.status"],
    [JSON.parse('{"kind":"http.status","equals":200,"__proto__":{}}'), "c.__proto__: is not a field"],
    [{ kind: "json.schema" }, "c.schema: is required"],
    [{ kind: "json.schema", schema: "" }, "c.schema: must be a string of 1 to 128 characters"],
    [{ kind: "json.schema", schema: "x".repeat(129) }, "c.schema: must be"],
    [
      { kind: "json.jsonpath", path: `$.${"a".repeat(1_023)}` },
      "c.path: must be a JSONPath of at most 1024 characters",
    ],
    [{ kind: "file.sha256", digest: "abc" }, "c.digest: must be 64 hex digits"],
    [{ kind: "file.sha256", digest: `${"0".repeat(63)}g` }, "c.digest: must be 64 hex digits"],
    [{ kind: "file.sha256", digest: `sha256:${DIGEST}` }, "c.digest: must be 64 hex digits"],
    [{ kind: "file.sha256", digest: `${DIGEST}\n` }, "c.digest: must be 64 hex digits"],
    [{ kind: "data.freshness", maxAgeSeconds: 0 }, "c.maxAgeSeconds: must be an integer greater than 0"],
    [{ kind: "data.freshness", maxAgeSeconds: 1.5 }, "c.maxAgeSeconds: must be an integer greater than 0"],
    [
      { kind: "uptime.window", windowSeconds: 60, minRatio: 1.01 },
      "c.minRatio: must be a number from 0 to 1",
    ],
    [{ kind: "uptime.window", windowSeconds: 0, minRatio: 1 }, "c.windowSeconds: must be"],
    [{ kind: "chain.event", topic: 5 }, "c.topic: must be"],
    [{ kind: "llm.judge", rubric: "x", minScore: -0.1 }, "c.minScore: must be a number from 0 to 1"],
    [{ kind: "llm.judge", rubric: "x" }, "c.minScore: is required"],
  ])("refuses %j", (clause, message) => {
    const refusal = parseClause(clause, "c");
    expect(refusal).toMatchObject({ refused: "validation_failed" });
    expect((refusal as { message: string }).message).toStartWith(message);
  });

  test("gives back a clause or a refusal for anything at all", () => {
    const field = fc.constantFrom("equals", "schema", "path", "digest", "maxAgeSeconds", "kind", "extra");
    const anything = fc.oneof(
      fc.anything(),
      fc
        .tuple(fc.constantFrom(...CLAUSE_KINDS), fc.dictionary(field, fc.anything()))
        .map(([kind, rest]) => ({ ...rest, kind })),
    );
    fc.assert(
      fc.property(anything, (value) => {
        const clause = parseClause(value, "c");
        expect(isRefusal(clause) || isClauseKind(clause.kind)).toBe(true);
      }),
    );
  });
});

describe("parseClauses", () => {
  test("takes 1 to 64 clauses", () => {
    expect(parseClauses(VALID, "spec.clauses")).toEqual(VALID as never);
    const one = { kind: "http.status", equals: 200 };
    expect(isRefusal(parseClauses(Array(64).fill(one), "spec.clauses"))).toBe(false);
    for (const wrong of [[], Array(65).fill(one)])
      expect(parseClauses(wrong, "spec.clauses")).toEqual({
        refused: "validation_failed",
        message: "spec.clauses: must hold 1 to 64 clauses",
      });
    for (const wrong of [undefined, {}, "x"])
      expect(parseClauses(wrong, "spec.clauses")).toMatchObject({ refused: "validation_failed" });
  });

  test("names the path of what is wrong", () => {
    const refusal = parseClauses([VALID[0], { kind: "json.schema", schema: 1 }], "spec.clauses");
    expect(refusal).toMatchObject({ message: expect.stringMatching(/^spec\.clauses\.1\.schema: /) });
  });

  test("refuses more than 64 kB of canonical JSON", () => {
    const clauses = Array.from({ length: 9 }, () => ({
      kind: "llm.judge",
      rubric: "x".repeat(8_000),
      minScore: 1,
    }));
    expect(parseClauses(clauses, "clauses")).toMatchObject({ refused: "validation_failed" });
    expect(isRefusal(parseClauses(clauses.slice(1), "clauses"))).toBe(false);
  });
});

test("refuseJsonPath refuses what is not a JSONPath, and names the field; a bench run reports it instead", () => {
  for (const path of ["$[", "a", "$[?(@.constructor.constructor('x')())]"]) {
    const clause = { kind: "json.jsonpath", path } as const;
    expect(parseClause(clause, "c")).toEqual(clause);
    expect(refuseJsonPath(clause, "c")).toMatchObject({
      refused: "validation_failed",
      message: expect.stringMatching(/^c\.path: is not a JSONPath/),
    });
  }
  expect(refuseJsonPath({ kind: "json.jsonpath", path: "$.a" }, "c")).toBeNull();
});

test("schemaNamesOf names each schema once", () => {
  const clauses = ["a", "b", "a"].map((schema) => ({ kind: "json.schema", schema }) as const);
  expect(schemaNamesOf([...clauses, { kind: "http.status", equals: 200 }])).toEqual(["a", "b"]);
});

test("the reason codes are a closed list of unique codes", () => {
  expect(new Set(REASON_CODES).size).toBe(REASON_CODES.length);
  expect(REASON_CODES.length).toBe(28);
});
