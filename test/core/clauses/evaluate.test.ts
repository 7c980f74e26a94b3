import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { sha256 } from "../../../src/core/canonical.ts";
import { documentOf, jsonEquals, observedOf } from "../../../src/core/clauses/document.ts";
import { evaluateClause } from "../../../src/core/clauses/evaluate.ts";
import {
  type Evidence,
  evidenceHashOf,
  type ReachedEvidence,
  reachedEvidence,
  summarise,
  unreachedEvidence,
} from "../../../src/core/clauses/evidence.ts";
import { CLAUSE_CODES, SOURCE_CODES } from "../../../src/core/clauses/reason-codes.ts";
import type { Clause } from "../../../src/core/clauses/registry.ts";
import { benchSchemas } from "../../../src/resources/bench-schemas.ts";
import { evaluate } from "../../support/evaluate.ts";

const NOW = Date.parse("2026-03-01T12:00:00.000Z");
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const json = (value: unknown, rest: Partial<ReachedEvidence> = {}): Evidence =>
  reachedEvidence({ status: 200, body: bytes(JSON.stringify(value)), ...rest });
const text = (body: string, rest: Partial<ReachedEvidence> = {}): Evidence =>
  reachedEvidence({ status: 200, body: bytes(body), ...rest });
const path = (path: string, ...equals: unknown[]): Clause =>
  equals.length > 0 ? { kind: "json.jsonpath", path, equals: equals[0] } : { kind: "json.jsonpath", path };

const status200: Clause = { kind: "http.status", equals: 200 };
const fresh60: Clause = { kind: "data.freshness", maxAgeSeconds: 60 };
const object: Clause = { kind: "json.schema", schema: "object" };
const uptime: Clause = { kind: "uptime.window", windowSeconds: 60, minRatio: 0.9 };
const event: Clause = { kind: "chain.event", topic: "Paid" };
const judge: Clause = { kind: "llm.judge", rubric: "good?", minScore: 0.5 };
const nested = (depth: number): string => `${"[".repeat(depth)}${"]".repeat(depth)}`;
const deepObject = `${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`;

/** Clause, evidence, the code it fails with or null, and what is observed. */
const CASES: readonly [Clause, Evidence, string | null, unknown][] = [
  [status200, json(1), null, 200],
  [status200, json(1, { status: 500 }), "status_mismatch", 500],
  [status200, json(1, { status: 201 }), "status_mismatch", 201],
  [status200, json(1, { status: 404 }), "source_not_found", 404],
  [status200, json(1, { status: 410 }), "source_not_found", 410],
  [{ kind: "http.status", equals: 404 }, json(1, { status: 404 }), null, 404],
  [{ kind: "http.status", equals: 404 }, json(1, { status: 410 }), "source_not_found", 410],
  [status200, json(1, { status: null }), "status_mismatch", null],

  [object, json({}), null, null],
  [object, json([]), "schema_mismatch", null],
  [{ kind: "json.schema", schema: "nowhere" }, json({}), "schema_not_found", null],
  [{ kind: "json.schema", schema: "toString" }, json({}), "schema_not_found", null],
  [object, text(""), "body_not_json", null],
  [object, text("{} {}"), "body_not_json", null],
  [object, text("\ufeff{}"), null, null],
  [object, text("\ufeff\ufeff{}"), "body_not_json", null],
  [object, text(" \ufeff{}"), "body_not_json", null],
  [fresh60, text('\ufeff{"generated_at":"2026-03-01T12:00:00Z"}'), null, 0],
  [object, reachedEvidence({ body: new Uint8Array([0x22, 0xff, 0x22]) }), "body_not_json", null],
  [object, text("NaN"), "body_not_json", null],

  [path("$.a"), json({ a: null }), null, null],
  [path("$.a"), json({ b: 1 }), "path_not_found", null],
  [path("$.a", null), json({ a: null }), null, null],
  [path("$.a", null), json({}), "path_not_found", null],
  [path("$.a", false), json({ a: false }), null, false],
  [path("$.a", false), json({ a: 0 }), "value_mismatch", 0],
  [path("$.a", 1), text('{"a":1.0}'), null, 1],
  [path("$.a", "1"), json({ a: 1 }), "value_mismatch", 1],
  [path("$.a", { x: 1, y: [2] }), json({ a: { y: [2], x: 1 } }), null, { y: [2], x: 1 }],
  [path("$.a", [1, 2]), json({ a: [2, 1] }), "value_mismatch", [2, 1]],
  [path("$[*]"), json([1, 2]), null, 1],
  [path("$[*]", 1), json([1]), null, 1],
  [path("$[*]", 1), json([1, 1]), "value_mismatch", [1, 1]],
  [path("$[*]", 1), json([]), "path_not_found", null],
  [path("$[", 1), json([]), "path_unsupported", null],
  [path("$.a"), text("<html>"), "body_not_json", null],
  [path("$.a"), json({ a: "x".repeat(2_000) }), null, `"${"x".repeat(1_023)}`],
  [path("$.a"), json({ a: "\ud800" }), null, '"\\ud800"'],
  [path("$.a", 5), text('{"a":1e999}'), "value_mismatch", "null"],
  [path("$.constructor"), json({}), "path_not_found", null],
  [path("$[?@.a == @.b]", 1), text('[{"a":{"__proto__":{}},"b":{"x":1}}]'), "path_not_found", null],

  [{ kind: "file.sha256", digest: sha256("abc") }, text("abc"), null, sha256("abc")],
  [{ kind: "file.sha256", digest: sha256("abc").toUpperCase() }, text("abc"), null, sha256("abc")],
  [{ kind: "file.sha256", digest: sha256("abc") }, text("abd"), "digest_mismatch", sha256("abd")],
  [{ kind: "file.sha256", digest: sha256("") }, reachedEvidence({}), null, sha256("")],

  [fresh60, json({ generated_at: "2026-03-01T11:59:00.000Z" }), null, 60],
  [fresh60, json({ generated_at: "2026-03-01T11:58:59.999Z" }), "data_stale", 60.001],
  [fresh60, json({ generated_at: "2026-03-01T12:05:00.000Z" }), null, -300],
  [fresh60, json({ generated_at: "2026-03-01T12:05:00.001Z" }), "data_stale", -300.001],
  [fresh60, json({ generated_at: "2026-03-01T12:59:30+01:00" }), null, 30],
  [fresh60, json({ generated_at: "2026-03-01T12:00:00" }), "no_timestamp", null],
  [fresh60, json({ generated_at: "yesterday" }), "no_timestamp", null],
  [fresh60, json({ generated_at: NOW }), "no_timestamp", null],
  [fresh60, json({ data: { generated_at: "2026-03-01T12:00:00Z" } }), "no_timestamp", null],
  [fresh60, json([{ generated_at: "2026-03-01T12:00:00Z" }]), "no_timestamp", null],
  [fresh60, json({}), "no_timestamp", null],
  [fresh60, text("hello", { lastModifiedAt: NOW - 5_000 }), null, 5],
  // The body's own time cannot be read. Then the header does not count either.
  [fresh60, json({ generated_at: "2020-01-01 00:00:00" }, { lastModifiedAt: NOW }), "no_timestamp", null],
  [fresh60, json({ generated_at: null }, { lastModifiedAt: NOW }), "no_timestamp", null],
  [fresh60, json({ other: 1 }, { lastModifiedAt: NOW - 1_000 }), null, 1],
  [fresh60, json({ generated_at: "2026-03-01T11:00:00Z" }, { lastModifiedAt: NOW }), "data_stale", 3_600],
  [fresh60, json({ generated_at: "2026-03-01T11:00:00Z" }, { generatedAt: NOW - 1_000 }), null, 1],
  [fresh60, text(`${" ".repeat(2_000)}{"generated_at":"2026-03-01T12:00:00Z"}`), null, 0],

  [uptime, json(1), "no_uptime_data", null],
  [uptime, json(1, { uptimeRatio: 0.9 }), null, 0.9],
  [uptime, json(1, { uptimeRatio: 0.89 }), "uptime_below_minimum", 0.89],
  [uptime, json(1, { uptimeRatio: Number.NaN }), "no_uptime_data", null],
  [event, json(1), "no_event_log", null],
  [event, json(1, { emittedTopics: ["Paid", "Sent"] }), null, ["Paid", "Sent"]],
  [event, json(1, { emittedTopics: ["paid"] }), "event_not_emitted", ["paid"]],
  [event, json(1, { emittedTopics: [] }), "event_not_emitted", []],
  [judge, json(1), "no_judgement", null],
  [judge, json(1, { judgeScore: 0.5 }), null, 0.5],
  [judge, json(1, { judgeScore: 0.49 }), "score_below_minimum", 0.49],

  [path("$", 1), text(nested(512)), "value_mismatch", JSON.parse(nested(512))],
  [path("$..a", 1), text(nested(512)), "path_not_found", null],
  [path("$..[?@ == 7]"), text(`${"[".repeat(512)}7${"]".repeat(512)}`), null, 7],
  [path("$"), text(nested(513)), "body_not_json", null],
  [object, text(nested(1_000_000)), "body_not_json", null],
  [path("$..b"), text(deepObject), "body_not_json", null],
  [path("$"), text(JSON.stringify(`"${nested(600)}`)), null, `"\\"${nested(600).slice(0, 1_021)}`],
  [
    path("$"),
    text(`[${Array(600).fill("[]").join()}]`),
    null,
    `[${Array(600).fill("[]").join()}`.slice(0, 1_024),
  ],
  [fresh60, text(`{"generated_at":"2026-03-01T12:00:00Z","a":${nested(512)}}`), "no_timestamp", null],
];

describe("evaluateClause", () => {
  test.each(CASES.map((one, index) => [index, one[0].kind, one] as const))(
    "case %i: %s",
    (_, __, [clause, evidence, code, observed]) => {
      expect(evaluateClause(clause, evidence, benchSchemas, NOW)).toEqual({
        kind: clause.kind,
        clause,
        passed: code === null,
        reason_code: code as never,
        observed,
      });
    },
  );

  test.each(SOURCE_CODES)(
    "where nothing was reached (%s), every kind but the coming-soon three fails with that",
    (code) => {
      const evidence = unreachedEvidence(code);
      const own: Record<string, string> = {
        "uptime.window": "no_uptime_data",
        "chain.event": "no_event_log",
        "llm.judge": "no_judgement",
      };
      for (const [clause] of CASES) {
        const result = evaluateClause(clause, evidence, benchSchemas, NOW);
        expect(result).toMatchObject({
          passed: false,
          reason_code: own[clause.kind] ?? code,
          observed: null,
        });
      }
    },
  );

  test("a schema that refers to itself without end fails, although its evaluation throws", () => {
    const schemas = {
      endless: { hash: "endless", schema: { anyOf: [{ $ref: "#" }] } },
      negated: { hash: "negated", schema: { not: { $ref: "#" } } },
    };
    for (const name of Object.keys(schemas)) {
      const result = evaluateClause({ kind: "json.schema", schema: name }, json({}), schemas, NOW);
      expect(result).toMatchObject({ passed: false, reason_code: "schema_mismatch" });
    }
  });

  test("a schema that does not compile fails", () => {
    const schemas = { broken: { hash: "broken", schema: { pattern: "(?=a)" } } };
    expect(evaluateClause({ kind: "json.schema", schema: "broken" }, json("a"), schemas, NOW).passed).toBe(
      false,
    );
  });

  test("whatever the body, the answer is a pass or one of the closed codes, and can be written as JSON", () => {
    const clauses = CASES.map(([clause]) => clause);
    fc.assert(
      fc.property(
        fc.constantFrom(...clauses),
        fc.oneof(fc.uint8Array(), fc.json().map(bytes)),
        (clause, body) => {
          const result = evaluateClause(clause, reachedEvidence({ status: 200, body }), benchSchemas, NOW);
          expect(result.passed).toBe(result.reason_code === null);
          if (result.reason_code !== null) expect(CLAUSE_CODES).toContain(result.reason_code);
          expect(JSON.parse(JSON.stringify(result.observed))).toEqual(result.observed);
        },
      ),
    );
  });
});

describe("evaluate", () => {
  test("evaluates every clause, and adds them up", () => {
    const clauses = [uptime, status200, path("$.a", 2), uptime, object, judge];
    const evaluation = evaluate(clauses, json({ a: 1 }), benchSchemas, NOW);
    expect(evaluation).toMatchObject({
      passed: false,
      score: 2 / 6,
      reasonCodes: ["no_uptime_data", "value_mismatch", "no_judgement"],
      evidenceHash: sha256('{"a":1}'),
      evaluatedAt: NOW,
    });
    expect(evaluation.details.map((detail) => detail.clause)).toEqual(clauses);
  });

  test("a clean pass has the score 1 and no codes", () => {
    expect(evaluate([status200, object], json({}), benchSchemas, NOW)).toMatchObject({
      passed: true,
      score: 1,
      reasonCodes: [],
    });
  });

  test("without clauses nothing passes", () => {
    expect(summarise([], "", NOW)).toMatchObject({ passed: false, score: 0 });
  });

  test("the evidence hash of no bytes is that of the empty text", () => {
    expect(evidenceHashOf(unreachedEvidence("source_timeout"))).toBe(sha256(""));
    expect(evidenceHashOf(reachedEvidence({}))).toBe(sha256(""));
  });
});

describe("documents", () => {
  test("JSON equality is that of canonical values", () => {
    const shuffled = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(shuffled);
      if (typeof value !== "object" || value === null) return value;
      return Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([name, member]) => [name, shuffled(member)]),
      );
    };
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
        expect(jsonEquals(one, shuffled(one))).toBe(true);
        expect(jsonEquals(one, other)).toBe(jsonEquals(other, one));
        expect(jsonEquals([one], one)).toBe(false);
      }),
    );
    expect(jsonEquals({}, [])).toBe(false);
    expect(jsonEquals({ a: undefined }, { b: undefined })).toBe(false);
    expect(jsonEquals({ toString: 1 }, { valueOf: 1 })).toBe(false);
  });

  test("a body is read once", () => {
    const body = bytes('{"a":1}');
    expect(documentOf(body)).toBe(documentOf(body));
  });

  test("what is observed is cut at 1 kB of JSON, between characters", () => {
    expect(observedOf("x".repeat(1_022))).toBe("x".repeat(1_022));
    expect(observedOf("x".repeat(1_023))).toBe(`"${"x".repeat(1_023)}`);
    const cut = observedOf("é😀".repeat(1_000)) as string;
    expect(Buffer.byteLength(cut)).toBeWithin(1_018, 1_025);
    expect(cut.isWellFormed()).toBe(true);
    expect(cut.endsWith("\ufffd")).toBe(false);
  });

  test("what is nested too deep to be written as text is observed as null", () => {
    // A document of 50,000 levels does the same, but JSON.stringify takes seconds before the stack is full.
    const overflow = (): number => 1 + overflow();
    expect(observedOf({ toJSON: overflow })).toBeNull();
  });
});
