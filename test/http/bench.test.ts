import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import type { Json, Reply } from "../support/client.ts";
import { type Service, startTestServer } from "../support/server.ts";
import { type Source, startSource } from "../support/source.ts";

/** POST /bench/run: clauses against a described deliverable. It needs no credential, holds nothing and records nothing. */

let service: Service;
let source: Source;
beforeAll(async () => {
  source = startSource();
  service = await startTestServer();
});
afterAll(async () => {
  await service?.close();
  source?.stop();
});

const NOW = "2030-01-15T12:00:00.000Z";
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const run = (body: unknown): Promise<Reply> => service.post("/bench/run", body, { key: null });
const bench = (clauses: readonly object[], deliverable: object = {}, more: object = {}): Promise<Reply> =>
  run({ clauses, deliverable: { reached: true, ...deliverable }, ...more });

test("all eight kinds pass and fail, each with its detail, and the score is the share", async () => {
  const raw = '{"rows":[{"id":7}]}';
  const clauses = [
    { kind: "http.status", equals: 200 },
    { kind: "json.schema", schema: "object" },
    { kind: "json.jsonpath", path: "$.rows[0].id", equals: 7 },
    { kind: "file.sha256", digest: sha256(raw) },
    { kind: "data.freshness", maxAgeSeconds: 60 },
    { kind: "uptime.window", windowSeconds: 60, minRatio: 0.99 },
    { kind: "chain.event", topic: "Paid" },
    { kind: "llm.judge", rubric: "is it good", minScore: 0.5 },
  ];
  const good = {
    status: 200,
    raw,
    generated_at: "2030-01-15T11:59:30Z",
    uptime_ratio: 0.995,
    emitted_topics: ["Paid"],
    judge_score: 0.5,
  };
  const passed = await bench(clauses, good, { now: NOW });
  expect(passed.status).toBe(200);
  expect(passed.body).toEqual({
    passed: true,
    score: 1,
    reason_codes: [],
    evidence_hash: sha256(raw),
    evaluated_at: NOW,
    details: [200, null, 7, sha256(raw), 30, 0.995, ["Paid"], 0.5].map((observed, index) => ({
      kind: clauses[index]!.kind,
      clause: clauses[index],
      passed: true,
      reason_code: null,
      observed,
    })),
  });
  const bad = {
    status: 503,
    raw: "[]",
    generated_at: "2030-01-15T11:58:59Z",
    uptime_ratio: 0.98,
    emitted_topics: ["paid"],
    judge_score: 0.49,
  };
  const failed = await bench(clauses, bad, { now: NOW });
  expect(failed.body).toMatchObject({ passed: false, score: 0, evidence_hash: sha256("[]") });
  expect(failed.body.reason_codes).toEqual([
    "status_mismatch",
    "schema_mismatch",
    "path_not_found",
    "digest_mismatch",
    "data_stale",
    "uptime_below_minimum",
    "event_not_emitted",
    "score_below_minimum",
  ]);
  const half = await bench(clauses.slice(0, 2), { ...good, status: 404 }, { now: NOW });
  expect(half.body).toMatchObject({ passed: false, score: 0.5, reason_codes: ["source_not_found"] });
});

test("a value that is not given is missing; a deliverable that was not reached fails with one code", async () => {
  const clauses = [
    { kind: "http.status", equals: 200 },
    { kind: "json.jsonpath", path: "$" },
    { kind: "data.freshness", maxAgeSeconds: 60 },
    { kind: "file.sha256", digest: sha256("") },
    { kind: "uptime.window", windowSeconds: 60, minRatio: 0 },
    { kind: "chain.event", topic: "Paid" },
    { kind: "llm.judge", rubric: "is it good", minScore: 0 },
  ];
  const codes = async (deliverable: object): Promise<readonly (string | null)[]> => {
    const { body } = await bench(clauses, deliverable);
    expect(body.evidence_hash).toBe(sha256(""));
    return body.details.map(({ reason_code }: Json) => reason_code);
  };
  const supplied = ["no_uptime_data", "no_event_log", "no_judgement"];
  expect(await codes({})).toEqual(["status_mismatch", "body_not_json", "no_timestamp", null, ...supplied]);
  const unreached = { reached: false, status: 200, raw: "{}", generated_at: NOW };
  expect(await codes(unreached)).toEqual([...Array(4).fill("source_unreachable"), ...supplied]);
  expect(await codes({ reached: false, uptime_ratio: 1, emitted_topics: ["Paid"], judge_score: 1 })).toEqual([
    ...Array(4).fill("source_unreachable"),
    null,
    null,
    null,
  ]);
});

test("the clock may be given, so that freshness is reproducible; without it, it is the service's", async () => {
  const clauses = [{ kind: "data.freshness", maxAgeSeconds: 60 }];
  const at = async (generated_at: string, now?: string): Promise<unknown> => {
    const { body } = await bench(clauses, { generated_at }, now === undefined ? {} : { now });
    return body.reason_codes[0] ?? null;
  };
  expect(await at("2030-01-15T11:59:00Z", NOW)).toBeNull();
  expect(await at("2030-01-15T11:58:59.999Z", NOW)).toBe("data_stale");
  expect(await at("2030-01-15T13:05:00+01:00", NOW)).toBeNull();
  expect(await at("2030-01-15T12:05:00.001Z", NOW)).toBe("data_stale");
  expect(await at(new Date().toISOString())).toBeNull();
  expect(await at(new Date(Date.now() - 61_000).toISOString())).toBe("data_stale");
  const inBody = { raw: JSON.stringify({ generated_at: "2030-01-15T11:59:59Z" }) };
  const { body } = await bench(clauses, inBody, { now: NOW });
  expect(body).toMatchObject({ passed: true, evaluated_at: NOW, details: [{ observed: 1 }] });
});

test("the built-in schemas are known, and no others", async () => {
  const scenarios: readonly [schema: string, raw: string, code: string | null][] = [
    ["object", "{}", null],
    ["object", "[]", "schema_mismatch"],
    ["array", "[]", null],
    ["array", "{}", "schema_mismatch"],
    ["non_empty_array", "[0]", null],
    ["non_empty_array", "[]", "schema_mismatch"],
    ["holdfast.receipt", "{}", "schema_mismatch"],
    ["holdfast.event", "{}", "schema_mismatch"],
    ["report", "{}", "schema_not_found"],
    ["__proto__", "{}", "schema_not_found"],
    ["toString", "{}", "schema_not_found"],
  ];
  for (const [schema, raw, code] of scenarios) {
    const { status, body } = await bench([{ kind: "json.schema", schema }], { raw });
    expect([schema, raw, status, body.reason_codes]).toEqual([schema, raw, 200, code === null ? [] : [code]]);
  }
});

test("the evidence hash and the details are those of a verification of the same bytes", async () => {
  const home = await service.organisation();
  const clauses = [
    { kind: "json.jsonpath", path: "$.price", equals: 8.4 },
    { kind: "json.jsonpath", path: "$.missing" },
    { kind: "http.status", equals: 200 },
  ];
  for (const raw of ['{ "price" : 8.40 }', "", "é💶\n", '{"price":8.4,"é":"\\u00e9"}']) {
    const { id } = await service.opened(home, { spec: { clauses } });
    const source_url = source.gives(raw);
    await service.post(`/v1/warrants/${id}/verify`, { source_url }, { as: home.live.as });
    const [check] = service.ctx.reader.checks.of(id);
    const { body } = await bench(clauses, { status: 200, raw });
    expect(body.evidence_hash).toBe(check!.evidenceHash);
    expect(body.evidence_hash).toBe(sha256(raw));
    expect(body.details).toEqual(check!.details);
    expect(body.reason_codes).toEqual(check!.reasonCodes);
    expect(Math.round(body.score * 10_000)).toBe(check!.score);
  }
});

test("nothing is written, whatever is sent and whoever sends it", async () => {
  const home = await service.organisation();
  const before = service.everything();
  const clauses = [{ kind: "http.status", equals: 200 }];
  const deliverable = { reached: true, status: 200, raw: "{}" };
  for (const as of [{}, home.live.as, home.people.owner.as, { Authorization: "Bearer nobody" }]) {
    const reply = await service.post("/bench/run", { clauses, deliverable }, { as, key: "never" });
    expect([reply.status, reply.headers.get("idempotent-replayed")]).toEqual([200, null]);
    expect((await service.post("/bench/run", { clauses: [] }, { as })).status).toBe(400);
  }
  expect(service.everything()).toEqual(before);
});

describe("sizes", () => {
  const clauses = [{ kind: "file.sha256", digest: "0".repeat(64) }];
  const KB = 1_024;

  test("raw of 128 kB is read, in bytes of UTF-8, and a byte more is refused", async () => {
    for (const raw of ["x".repeat(128 * KB), "é".repeat(64 * KB)])
      expect((await bench(clauses, { raw })).body.evidence_hash).toBe(sha256(raw));
    for (const raw of ["x".repeat(128 * KB + 1), `${"é".repeat(64 * KB)}x`]) {
      const reply = await bench(clauses, { raw });
      expect([reply.code, reply.body.error.message.split(":")[0]]).toEqual([
        "validation_failed",
        "deliverable.raw",
      ]);
    }
  });

  test("a body of 1 MiB is read, and a byte more is refused", async () => {
    const body = JSON.stringify({ clauses, deliverable: { reached: true } });
    expect((await run(body.padEnd(1_024 * KB))).status).toBe(200);
    const over = await run(body.padEnd(1_024 * KB + 1));
    expect([over.status, over.code]).toEqual([400, "validation_failed"]);
    expect(over.body.error.message).toStartWith("body: ");
  });
});

describe("invalid requests", () => {
  const clause = { kind: "http.status", equals: 200 };
  const deliverable = { reached: true };
  const wrong: readonly [body: unknown, start: string][] = [
    [undefined, ""],
    [{ deliverable }, "clauses: is required"],
    [{ clauses: [clause] }, "deliverable: is required"],
    [{ clauses: [], deliverable }, "clauses: "],
    [{ clauses: Array(65).fill(clause), deliverable }, "clauses: "],
    [{ clauses: [{ kind: "ninth" }], deliverable }, "clauses.0.kind: must be one of http.status, "],
    [{ clauses: [{ ...clause, x: 1 }], deliverable }, "clauses.0.x: "],
    [{ clauses: [clause], deliverable: {} }, "deliverable.reached: is required"],
    [{ clauses: [clause], deliverable: { reached: "yes" } }, "deliverable.reached: "],
    [{ clauses: [clause], deliverable: { reached: true, status: "200" } }, "deliverable.status: "],
    [{ clauses: [clause], deliverable: { reached: true, status: 200.5 } }, "deliverable.status: "],
    [{ clauses: [clause], deliverable: { reached: true, raw: {} } }, "deliverable.raw: "],
    [
      { clauses: [clause], deliverable: { reached: true, generated_at: "today" } },
      "deliverable.generated_at: ",
    ],
    [{ clauses: [clause], deliverable: { reached: true, generated_at: 0 } }, "deliverable.generated_at: "],
    [{ clauses: [clause], deliverable: { reached: true, uptime_ratio: "1" } }, "deliverable.uptime_ratio: "],
    [
      { clauses: [clause], deliverable: { reached: true, emitted_topics: "Paid" } },
      "deliverable.emitted_topics: ",
    ],
    [
      { clauses: [clause], deliverable: { reached: true, emitted_topics: [1] } },
      "deliverable.emitted_topics",
    ],
    [{ clauses: [clause], deliverable: { reached: true, judge_score: null } }, "deliverable.judge_score: "],
    [
      { clauses: [clause], deliverable: { reached: true, headers: {} } },
      "deliverable.headers: unknown field",
    ],
    [{ clauses: [clause], deliverable, now: "yesterday" }, "now: "],
    [{ clauses: [clause], deliverable, now: "2030-01-15T12:00:00" }, "now: "],
    [{ clauses: [clause], deliverable, source_url: "http://a.example" }, "source_url: unknown field"],
    ['{"clauses":[],"clauses":[]}', "body: has the same key twice"],
  ];
  for (const [body, start] of wrong) {
    test(JSON.stringify(body)?.slice(0, 80) ?? "nothing", async () => {
      const reply = await run(body);
      const { message } = reply.body.error;
      expect([reply.status, reply.code, message.slice(0, start.length)]).toEqual([
        400,
        "validation_failed",
        start,
      ]);
    });
  }

  test("a path that is not supported is path_unsupported, not an error", async () => {
    for (const path of ["$[", "$..", "$[?(process.exit())]", "$.a[(@.length-1)]"]) {
      const { status, body } = await bench([{ kind: "json.jsonpath", path }], { raw: "{}" });
      expect([path, status, body?.reason_codes]).toEqual([path, 200, ["path_unsupported"]]);
    }
  });
});
