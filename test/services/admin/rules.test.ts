import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hashJson } from "../../../src/core/canonical.ts";
import type { ClauseKind } from "../../../src/core/clauses/registry.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { createPolicy, type PolicyInput } from "../../../src/services/admin/policies.ts";
import { createSchema, type SchemaInput } from "../../../src/services/admin/schemas.ts";
import { createVerifier, type VerifierInput } from "../../../src/services/admin/verifiers.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { type Expected, expectRefused } from "../../support/refused.ts";
import { createCaller, createStage, must, open, type Stage, warrantIn } from "../../support/stage.ts";

let ctx: TestContext;
let stage: Stage;
let other: Stage;

beforeAll(async () => {
  ctx = createTestContext();
  stage = await createStage(ctx);
  other = await createStage(ctx);
});
afterAll(() => ctx.close());

const RULES = {
  bands: [
    { minScore: 1, outcome: "release" },
    { minScore: 0, outcome: "refund" },
  ],
};

describe("createPolicy", () => {
  const input = (change: Partial<PolicyInput> = {}): PolicyInput => ({
    organisation_id: stage.organisationId,
    name: "standard",
    rules: RULES,
    ...change,
  });

  test("versions count per organisation, agent and name, and are what opens pin", async () => {
    const caller = await createCaller(stage);
    const create = async (change: Partial<PolicyInput> = {}) =>
      must(await createPolicy(ctx, MACHINE, input(change)));
    const first = await create();
    expect(first).toMatchObject({
      object: "policy",
      agent_id: null,
      version: 1,
      rules: RULES,
      rules_hash: hashJson(RULES),
    });
    expect((await create()).version).toBe(2);
    expect((await create({ name: "other" })).version).toBe(1);
    expect((await create({ organisation_id: other.organisationId })).version).toBe(1);
    const own = await create({ agent_id: caller.agentId });
    expect([own.version, own.agent_id]).toEqual([1, caller.agentId]);
    expect((await create({ agent_id: caller.agentId })).version).toBe(2);
    const third = await create();
    expect(third.version).toBe(3);

    const unnamed = warrantIn(await open(stage, caller));
    expect([unnamed.policy_id, unnamed.policy_version]).toEqual([third.id, 3]);
    const named = warrantIn(await open(stage, caller, { agent_id: caller.agentId }));
    expect(named.policy_version).toBe(2);
  });

  test("of many at once, each has a version of its own", async () => {
    const all = await Promise.all(
      Array.from({ length: 10 }, () => createPolicy(ctx, MACHINE, input({ name: "race" }))),
    );
    expect(all.map((one) => must(one).version).sort((a, b) => a - b)).toEqual([
      1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
    ]);
  });

  const REFUSED: readonly (readonly [string, Partial<PolicyInput>, Expected])[] = [
    ["no name", { name: "" }, ["validation_failed", "name: "]],
    ["rules that are a list", { rules: [] }, ["validation_failed", "rules: "]],
    ["no bands", { rules: { bands: [] } }, ["policy_no_bands", "rules.bands: "]],
    [
      "no floor band",
      { rules: { bands: [{ minScore: 0.5, outcome: "release" }] } },
      ["policy_no_floor_band", "rules.bands: "],
    ],
    [
      "a score out of range",
      { rules: { bands: [{ minScore: 2, outcome: "release" }] } },
      ["policy_band_out_of_range", "rules.bands.0.minScore: "],
    ],
    [
      "a share that is missing",
      { rules: { bands: [{ minScore: 0, outcome: "partial_release" }] } },
      ["policy_band_bps_required", "rules.bands.0.releasedBps: "],
    ],
    [
      "a label with half a character",
      { rules: { bands: [{ minScore: 0, outcome: "refund", label: "\ud83d" }] } },
      ["validation_failed", "rules"],
    ],
    ["an unknown organisation", { organisation_id: "org_none" }, ["organisation_not_found", ""]],
    ["an unknown agent", { agent_id: "agt_none" }, ["agent_not_found", ""]],
  ];
  for (const [what, change, expected] of REFUSED) {
    test(`refuses ${what}: no policy`, () =>
      expectRefused(ctx, () => createPolicy(ctx, MACHINE, input(change)), expected));
  }

  test("refuses an agent of another organisation, and those who may not", async () => {
    const { agentId } = await createCaller(other);
    await expectRefused(ctx, () => createPolicy(ctx, MACHINE, input({ agent_id: agentId })), [
      "agent_not_found",
      "",
    ]);
    await expectRefused(ctx, () => createPolicy(ctx, stage.operator, input()), ["insufficient_role", ""]);
    await expectRefused(ctx, () => createPolicy(ctx, other.owner, input()), ["organisation_not_found", ""]);
  });
});

describe("createSchema", () => {
  const input = (change: Partial<SchemaInput> = {}): SchemaInput => ({
    organisation_id: stage.organisationId,
    name: "weather.v1",
    schema: { type: "object", required: ["celsius"] },
    ...change,
  });

  test("saves a schema that never changes: the name is taken, but free in another organisation", async () => {
    const saved = must(await createSchema(ctx, MACHINE, input()));
    expect(saved).toMatchObject({
      object: "schema",
      name: "weather.v1",
      schema_hash: hashJson(input().schema),
    });
    for (const schema of [input().schema, true]) {
      await expectRefused(ctx, () => createSchema(ctx, MACHINE, input({ schema })), [
        "already_exists",
        "name: ",
      ]);
    }
    const kept = ctx.reader.schemas.named(stage.organisationId, ["weather.v1"]);
    expect(kept.map(({ schemaHash }) => schemaHash)).toEqual([saved.schema_hash]);
    expect(
      must(await createSchema(ctx, other.admin, input({ organisation_id: other.organisationId }))).name,
    ).toBe("weather.v1");
  });

  const REFUSED: readonly (readonly [string, Partial<SchemaInput>, Expected])[] = [
    ["an empty name", { name: "" }, ["validation_failed", "name: "]],
    ["a name with a space", { name: "a b" }, ["validation_failed", "name: "]],
    ["a name of 129", { name: "x".repeat(129) }, ["validation_failed", "name: "]],
    ["a schema that is a text", { schema: "{}" }, ["validation_failed", "schema: "]],
    ["an unknown type", { schema: { type: "thing" } }, ["validation_failed", "schema.type: "]],
    ["a mistyped keyword", { schema: { requird: [] } }, ["validation_failed", "schema: "]],
    ["a malformed pattern", { schema: { pattern: "(" } }, ["validation_failed", "schema"]],
    ["an unknown organisation", { organisation_id: "org_none" }, ["organisation_not_found", ""]],
  ];
  for (const [what, change, expected] of REFUSED) {
    test(`refuses ${what}: no schema`, () =>
      expectRefused(ctx, () => createSchema(ctx, MACHINE, input({ name: "new", ...change })), expected));
  }

  test("is an admin's", () =>
    expectRefused(ctx, () => createSchema(ctx, stage.operator, input({ name: "new" })), [
      "insufficient_role",
      "",
    ]));
});

describe("createVerifier", () => {
  const input = (change: Partial<VerifierInput> = {}): VerifierInput => ({
    organisation_id: stage.organisationId,
    type: "http.status",
    name: "answers 200",
    config: { equals: 200 },
    ...change,
  });

  test("saves the clause's fields apart from kind, and a warrant gets the clause", async () => {
    const saved = must(await createVerifier(ctx, stage.admin, input()));
    expect(saved).toMatchObject({ object: "verifier", type: "http.status", config: { equals: 200 } });
    const warrant = warrantIn(await open(stage, stage.operator, { verifier_id: saved.id }));
    expect(warrant.spec.clauses.at(-1)).toEqual({ kind: "http.status", equals: 200 });
  });

  test("may name a schema that exists, in its own organisation", async () => {
    must(
      await createSchema(ctx, MACHINE, { organisation_id: stage.organisationId, name: "mine", schema: true }),
    );
    const bySchema = input({ type: "json.schema", config: { schema: "mine" } });
    expect(must(await createVerifier(ctx, MACHINE, bySchema)).config).toEqual({ schema: "mine" });
    const elsewhere = { ...bySchema, organisation_id: other.organisationId };
    await expectRefused(ctx, () => createVerifier(ctx, MACHINE, elsewhere), [
      "validation_failed",
      "config.schema: ",
    ]);
  });

  const REFUSED: readonly (readonly [string, Partial<VerifierInput>, Expected])[] = [
    [
      "a ninth kind",
      { type: "shell.run" as ClauseKind },
      ["validation_failed", "type: must be one of http.status, json.schema"],
    ],
    ["an inherited name for a kind", { type: "toString" as ClauseKind }, ["validation_failed", "type: "]],
    ["no name", { name: "" }, ["validation_failed", "name: "]],
    ["a config that is a list", { config: [] }, ["validation_failed", "config: "]],
    ["a config that is null", { config: null }, ["validation_failed", "config: "]],
    [
      "a kind in the config",
      { config: { kind: "llm.judge", equals: 1 } },
      ["validation_failed", "config.kind: "],
    ],
    ["a missing field", { config: {} }, ["validation_failed", "config.equals: "]],
    ["an unknown field", { config: { equals: 1, also: 2 } }, ["validation_failed", "config.also: "]],
    ["a value of the wrong kind", { config: { equals: "200" } }, ["validation_failed", "config.equals: "]],
    [
      "a malformed path",
      { type: "json.jsonpath", config: { path: "$[" } },
      ["validation_failed", "config.path: "],
    ],
    [
      "more than 64 kB",
      { type: "json.jsonpath", config: { path: "$", equals: "x".repeat(65_536) } },
      ["validation_failed", "config: "],
    ],
    [
      "a schema that does not exist",
      { type: "json.schema", config: { schema: "nowhere" } },
      ["validation_failed", 'config.schema: there is no schema named "nowhere"'],
    ],
    ["an unknown organisation", { organisation_id: "org_none" }, ["organisation_not_found", ""]],
  ];
  for (const [what, change, expected] of REFUSED) {
    test(`refuses ${what}: no verifier`, () =>
      expectRefused(ctx, () => createVerifier(ctx, MACHINE, input(change)), expected));
  }

  test("is an admin's", () =>
    expectRefused(ctx, () => createVerifier(ctx, stage.operator, input()), ["insufficient_role", ""]));
});
