import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createSchema } from "../../src/services/admin/schemas.ts";
import type { SendOptions } from "../support/client.ts";
import { must } from "../support/organisations.ts";
import { type Service, startTestServer } from "../support/server.ts";
import { type Source, startSource } from "../support/source.ts";

/** POST /v1/warrants/:id/verify: the fetch, the clauses, the policy's outcome, and what is recorded of them. */

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

const verify = (id: string, source_url: string, options: SendOptions) =>
  service.post(`/v1/warrants/${id}/verify`, { source_url }, options);

/** Four clauses, of which so many find what they look for. */
const quarters = {
  spec: { clauses: [0, 1, 2, 3].map((index) => ({ kind: "json.jsonpath", path: `$.c${index}` })) },
};
const passing = (count: number): object =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`c${index}`, index]));

const BANDS = [
  { minScore: 1, outcome: "release", label: "clean" },
  { minScore: 0.5, outcome: "partial_release", releasedBps: 3_333, label: "half" },
  { minScore: 0.25, outcome: "escalate" },
  { minScore: 0, outcome: "refund" },
];

describe("the policy decides", () => {
  type Outcome = {
    readonly rules?: object;
    readonly passed: number;
    readonly amount?: string;
    readonly state: string;
    readonly bps: number | null;
    readonly paid: bigint;
    readonly label?: string | null;
    readonly codes?: readonly string[];
  };
  const outcomes: Readonly<Record<string, Outcome>> = {
    "built in: a clean pass pays": { passed: 4, state: "released", bps: 10_000, paid: 100n },
    "built in: anything less waits for a person": { passed: 3, state: "escalated", bps: null, paid: 0n },
    "bands: release": {
      rules: { bands: BANDS },
      passed: 4,
      state: "released",
      bps: 10_000,
      paid: 100n,
      label: "clean",
    },
    "bands: a share, rounded down": {
      rules: { bands: BANDS },
      passed: 3,
      amount: "101",
      state: "partially_released",
      bps: 3_333,
      paid: 33n,
      label: "half",
    },
    "bands: at the edge of one": {
      rules: { bands: BANDS },
      passed: 2,
      state: "partially_released",
      bps: 3_333,
      paid: 33n,
      label: "half",
    },
    "bands: escalate": { rules: { bands: BANDS }, passed: 1, state: "escalated", bps: null, paid: 0n },
    "bands: refund": { rules: { bands: BANDS }, passed: 0, state: "refunded", bps: null, paid: 0n },
    "alwaysRefund comes before the bands": {
      rules: { bands: [{ minScore: 0, outcome: "release" }], alwaysRefund: ["path_not_found"] },
      passed: 3,
      state: "refunded",
      bps: null,
      paid: 0n,
    },
    "alwaysEscalate comes before the bands": {
      rules: { bands: [{ minScore: 0, outcome: "release" }], alwaysEscalate: ["path_not_found"] },
      passed: 3,
      state: "escalated",
      bps: null,
      paid: 0n,
    },
    "alwaysRefund comes before alwaysEscalate": {
      rules: {
        bands: [{ minScore: 0, outcome: "release" }],
        alwaysEscalate: ["path_not_found"],
        alwaysRefund: ["path_not_found"],
      },
      passed: 0,
      state: "refunded",
      bps: null,
      paid: 0n,
    },
    "a code that did not occur changes nothing": {
      rules: { bands: [{ minScore: 0, outcome: "release" }], alwaysRefund: ["data_stale"] },
      passed: 0,
      state: "released",
      bps: 10_000,
      paid: 100n,
    },
    "a share that comes to nothing escalates": {
      rules: { bands: [{ minScore: 0, outcome: "partial_release", releasedBps: 99 }] },
      passed: 2,
      state: "escalated",
      bps: null,
      paid: 0n,
      codes: ["path_not_found", "share_too_small"],
    },
    "the smallest share that is one": {
      rules: { bands: [{ minScore: 0, outcome: "partial_release", releasedBps: 100 }] },
      passed: 4,
      state: "partially_released",
      bps: 100,
      paid: 1n,
    },
  };
  for (const [
    name,
    { rules, passed, amount = "100", state, bps, paid, label = null, codes },
  ] of Object.entries(outcomes)) {
    test(name, async () => {
      const home = await service.organisation();
      const policy = rules && (await home.addPolicy(rules));
      const opened = await service.opened(home, { ...quarters, amount });
      const body = JSON.stringify(passing(passed));
      const reply = await verify(opened.id, source.gives(body), { as: home.live.as });
      const settles = state !== "escalated";
      expect(reply.status).toBe(200);
      expect(reply.body).toEqual({
        ...opened,
        state,
        version: 3,
        released_bps: bps,
        policy_id: policy?.id ?? null,
        policy_version: policy ? 1 : null,
        settled_at: settles ? expect.stringMatching(/Z$/) : null,
      });
      const held = settles ? 0n : BigInt(amount);
      expect(service.balance(home)).toEqual({ available: 1_000_000n - held - paid, held, paid });

      const reasonCodes = codes ?? (passed === 4 ? [] : ["path_not_found"]);
      const [check, ...more] = service.ctx.reader.checks.of(opened.id);
      expect(more).toEqual([]);
      expect(check).toMatchObject({
        httpStatus: 200,
        bytes: body.length,
        score: passed * 2_500,
        passed: passed === 4,
        reasonCodes,
        evidenceHash: createHash("sha256").update(body).digest("hex"),
      });
      const always = name.startsWith("always");
      if (!always) expect(check!.bandLabel).toBe(label);
      const escalations = service.allRows(home).escalations!;
      expect(escalations).toHaveLength(settles ? 0 : 1);
      if (!settles) {
        const listed = await service.get("/v1/console/escalations", { as: home.people.viewer.as });
        expect(listed.body.data).toMatchObject([
          {
            warrant_id: opened.id,
            check_id: check!.id,
            score: passed * 2_500,
            reason_codes: reasonCodes,
            status: "open",
          },
        ]);
      }
    });
  }
});

test("each kind of clause passes and fails with its own code; what nobody supplies fails closed", async () => {
  const home = await service.organisation();
  const schema = { type: "object", required: ["rows"], properties: { rows: { type: "array", minItems: 1 } } };
  must(await createSchema(service.ctx, MACHINE, { organisation_id: home.id, name: "report", schema }));
  const good = JSON.stringify({ generated_at: new Date().toISOString(), rows: [{ id: 7 }] });
  const digest = createHash("sha256").update(good).digest("hex");
  const clauses = [
    { kind: "http.status", equals: 200 },
    { kind: "json.schema", schema: "report" },
    { kind: "json.jsonpath", path: "$.rows[0].id", equals: 7 },
    { kind: "json.jsonpath", path: "$.rows[*]" },
    { kind: "file.sha256", digest },
    { kind: "data.freshness", maxAgeSeconds: 60 },
    { kind: "uptime.window", windowSeconds: 60, minRatio: 0 },
    { kind: "chain.event", topic: "t" },
    { kind: "llm.judge", rubric: "is it good", minScore: 0 },
  ];
  const supplied = ["no_uptime_data", "no_event_log", "no_judgement"];
  const six = [null, null, null, null, null, null];
  const stale = JSON.stringify({ generated_at: "2020-01-01T00:00:00Z", rows: [] });
  const scenarios: readonly [url: string, codes: readonly (string | null)[]][] = [
    [source.gives(good), six],
    [
      source.gives(stale, { status: 500 }),
      [
        "status_mismatch",
        "schema_mismatch",
        "path_not_found",
        "path_not_found",
        "digest_mismatch",
        "data_stale",
      ],
    ],
    [
      source.gives("not json", { status: 404 }),
      [
        "source_not_found",
        "body_not_json",
        "body_not_json",
        "body_not_json",
        "digest_mismatch",
        "no_timestamp",
      ],
    ],
    [
      source.gives({ rows: [{ id: 8 }] }, { headers: { "Last-Modified": new Date(0).toUTCString() } }),
      [null, null, "value_mismatch", null, "digest_mismatch", "data_stale"],
    ],
    ["http://127.0.0.1:1/", Array(6).fill("source_unreachable")],
  ];
  for (const [url, codes] of scenarios) {
    const { id } = await service.opened(home, { spec: { clauses } });
    const reply = await verify(id, url, { as: home.live.as });
    expect([reply.status, reply.body.state]).toEqual([200, "escalated"]);
    const [check] = service.ctx.reader.checks.of(id);
    const all = [...codes, ...supplied];
    expect(check!.details.map(({ reason_code }) => reason_code as string | null)).toEqual(all);
    expect(check!.details.map(({ kind }) => kind as string)).toEqual(clauses.map(({ kind }) => kind));
    const unique = [...new Set(all.filter((code) => code !== null))];
    expect(check!.reasonCodes as readonly string[]).toEqual(unique);
    const passed = all.filter((code) => code === null).length;
    expect(check!.score).toBe(Math.round((passed / clauses.length) * 10_000));
  }
});
