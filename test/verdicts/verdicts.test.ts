import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { canonicalJson, hashJson } from "../../src/core/canonical.ts";
import { type Check, checkHashOf } from "../../src/core/check.ts";
import { evaluateClause, resultOf } from "../../src/core/clauses/evaluate.ts";
import {
  type Evidence,
  evidenceHashOf,
  reachedEvidence,
  summarise,
  unreachedEvidence,
} from "../../src/core/clauses/evidence.ts";
import { CLAUSE_CODES } from "../../src/core/clauses/reason-codes.ts";
import { CLAUSE_KINDS, type Clause, parseClauses } from "../../src/core/clauses/registry.ts";
import { parseSchema, type Schemas } from "../../src/core/clauses/schema.ts";
import { isRefusal } from "../../src/core/errors.ts";
import { scoreInBps } from "../../src/core/policy.ts";
import { parseTime } from "../../src/core/time.ts";
import { parseHttpDate } from "../../src/platform/fetcher.ts";
import { checkResultResource } from "../../src/resources/bench.ts";
import { benchSchemas } from "../../src/resources/bench-schemas.ts";
import { type Service, startTestServer } from "../support/server.ts";
import { checkHashes, corpus, type ShownCheck, type Verdict } from "./corpus.ts";

/** Our program over the cases. `replay.py` is a second one, which was written from the page alone. */

const cases = corpus.flatMap(([, ofFile]) => ofFile);

function evidenceOf({ evidence }: Verdict): Evidence {
  const supplied = {
    uptimeRatio: evidence.uptime_ratio ?? null,
    emittedTopics: evidence.emitted_topics ?? null,
    judgeScore: evidence.judge_score ?? null,
  };
  if (evidence.failure) return unreachedEvidence(evidence.failure, supplied);
  return reachedEvidence({
    ...supplied,
    status: evidence.status ?? null,
    body: Buffer.from(evidence.body_base64 ?? evidence.body ?? "", evidence.body_base64 ? "base64" : "utf8"),
    lastModifiedAt: parseHttpDate(evidence.last_modified ?? null),
    generatedAt: parseTime(evidence.generated_at),
  });
}

function schemasOf({ schemas = {} }: Verdict): Schemas {
  const named = Object.entries(schemas).map(([name, given]) => {
    const parsed = parseSchema(given);
    if (isRefusal(parsed)) throw new Error(parsed.message);
    return [name, { hash: hashJson(given), schema: parsed.schema }] as const;
  });
  return Object.fromEntries(named);
}

function clausesOf({ clauses }: Verdict): readonly Clause[] {
  const parsed = parseClauses(clauses, "clauses");
  if (isRefusal(parsed)) throw new Error(parsed.message);
  return parsed;
}

/** A value after it was sent: there is no -0 in JSON that JavaScript writes. */
const onWire = (value: object) => JSON.parse(JSON.stringify(value));

describe.each(corpus)("%s", (_, ofFile) => {
  test.each(ofFile.map((one) => [one.name, one] as const))("%s", (_, one) => {
    const [clauses, evidence, schemas, now] = [
      clausesOf(one),
      evidenceOf(one),
      schemasOf(one),
      Date.parse(one.now),
    ];
    const details = clauses.map((clause, index) =>
      one.timed_out?.includes(index)
        ? resultOf(clause, "clause_timeout")
        : evaluateClause(clause, evidence, schemas, now),
    );
    const evaluation = summarise(details, evidenceHashOf(evidence), now);
    const { evaluated_at, ...result } = onWire(checkResultResource(evaluation));
    const { spec_hash, score_bps, ...expected } = one.expected;
    expect(result).toEqual(onWire(expected));
    expect(evaluated_at).toBe(one.now);
    expect(scoreInBps(evaluation.score)).toBe(score_bps);
    expect(hashJson({ clauses: one.clauses })).toBe(spec_hash);
  });
});

test.each(checkHashes.map((one) => [one.name, one] as const))("the hash of a check: %s", (_, one) => {
  expect(canonicalJson(one.check)).toBe(one.canonical);
  expect(hashJson(one.check)).toBe(one.check_hash);
  expect(checkHashOf(checkIn(one.check))).toBe(one.check_hash);
});

/** The check that the API shows so. */
const checkIn = (shown: ShownCheck): Check => ({
  id: shown.id,
  warrantId: shown.warrant_id,
  sourceUrl: shown.source_url,
  httpStatus: shown.http_status,
  bytes: shown.bytes,
  durationMs: shown.duration_ms,
  score: shown.score,
  passed: shown.passed,
  reasonCodes: shown.reason_codes,
  evidenceHash: shown.evidence_hash,
  details: shown.details,
  outcome: shown.outcome,
  bandLabel: shown.band_label,
  evaluatedAt: Date.parse(shown.evaluated_at),
  evaluatorVersion: shown.evaluator_version ?? null,
  signedBy: shown.signed_by ?? null,
  capsuleHash: shown.capsule_hash ?? null,
});

describe("the corpus", () => {
  const details = cases.flatMap(({ expected }) => expected.details);

  test("has a clause of each kind that passes, and one that fails", () => {
    for (const kind of CLAUSE_KINDS)
      for (const passed of [true, false])
        expect(details.filter((one) => one.kind === kind && one.passed === passed)).not.toBeEmpty();
  });

  test("has every code that evaluation gives, and no other", () => {
    const found = new Set(details.flatMap(({ reason_code: code }) => (code === null ? [] : [code])));
    expect([...found].sort()).toEqual([...CLAUSE_CODES].sort());
  });

  test("has 200 cases or more, each of a name of its own", () => {
    expect(cases.length).toBeGreaterThanOrEqual(200);
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
  });
});

test("the page on evaluation names every kind and every code", () => {
  const page = readFileSync(join(import.meta.dir, "../../src/docs/evaluation.md"), "utf8");
  for (const kind of CLAUSE_KINDS) expect(page).toContain(`\n### ${kind}\n`);
  const listed = [...(page.split("\n## Reason codes\n")[1] ?? "").matchAll(/`([a-z]+_[a-z_]+)`/g)];
  expect([...new Set(listed.map(([, code]) => code))].sort()).toEqual([...CLAUSE_CODES].sort() as string[]);
});

describe("at the bench", () => {
  let service: Service;
  beforeAll(async () => {
    service = await startTestServer();
  });
  afterAll(() => service?.close());

  /** What a described deliverable can say: a text, no header, no other schemas, and no code but one. */
  const canBeDescribed = (one: Verdict): boolean =>
    one.evidence.body_base64 === undefined &&
    one.evidence.last_modified === undefined &&
    one.timed_out === undefined &&
    (one.evidence.failure ?? "source_unreachable") === "source_unreachable" &&
    Object.keys(one.schemas ?? {}).every((name) => Object.hasOwn(benchSchemas, name));

  const described = corpus.flatMap(([file, ofFile]) => {
    const possible = ofFile.filter(canBeDescribed);
    return [possible[0], possible.at(-1)].flatMap((one) => (one ? [[file, one.name, one] as const] : []));
  });

  test.each(described)("%s: %s", async (_, __, { clauses, evidence, now, expected }) => {
    const { failure, body, ...rest } = evidence;
    const deliverable = { reached: failure === undefined, ...(body !== undefined && { raw: body }), ...rest };
    const answer = await service.post("/bench/run", { clauses, deliverable, now }, { key: null });
    const { spec_hash, score_bps, ...result } = expected;
    expect(answer.body).toEqual({ ...result, evaluated_at: now });
  });
});
