import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { KeyCaller } from "../../../src/core/roles.ts";
import { DAY_MS } from "../../../src/core/time.ts";
import { updateAgent } from "../../../src/services/admin/agents.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { createSession, revokeSession, type SessionInput } from "../../../src/services/admin/sessions.ts";
import { createTestContext, TEST_NOW, type TestContext } from "../../support/context.ts";
import { type Expected, expectRefused } from "../../support/refused.ts";
import { codeOf, createCaller, createStage, must, open, type Stage } from "../../support/stage.ts";

let ctx: TestContext;
let stage: Stage;
let caller: KeyCaller;

beforeAll(async () => {
  ctx = createTestContext();
  stage = await createStage(ctx);
});
afterAll(() => ctx.close());

const create = async (change: Partial<SessionInput> = {}) =>
  createSession(ctx, MACHINE, { agent_id: caller.agentId, amount_ceiling: "500", ...change });
const openNamed = (amount = "100") => open(stage, caller, { agent_id: caller.agentId, amount });

describe("createSession", () => {
  beforeAll(async () => {
    caller = await createCaller(stage, { failure_budget: 5 });
  });

  test("has the agent's failure budget and 7 days by default", async () => {
    const session = must(await create());
    expect(session).toEqual({
      id: session.id,
      object: "spend_session",
      agent_id: caller.agentId,
      amount_ceiling: "500",
      amount_spent: "0",
      warrant_limit: null,
      warrant_count: 0,
      failure_budget: 5,
      failure_count: 0,
      per_warrant_max: null,
      hourly_max: null,
      daily_max: null,
      payees: null,
      source_origins: null,
      expires_at: new Date(TEST_NOW + 7 * DAY_MS).toISOString(),
      created_at: new Date(TEST_NOW).toISOString(),
      revoked_at: null,
      warning: expect.stringMatching(/^The agent's keys may open warrants without naming it/),
    });
  });

  test("has the values that were given, up to the largest amount", async () => {
    const session = must(
      await create({
        amount_ceiling: "09223372036854775807",
        warrant_limit: 2,
        failure_budget: 1,
        expires_at: "2030-02-01T00:00:00+01:00",
      }),
    );
    expect(session).toMatchObject({
      amount_ceiling: "9223372036854775807",
      warrant_limit: 2,
      failure_budget: 1,
      expires_at: "2030-01-31T23:00:00.000Z",
    });
  });

  test("revokes the one before in the same commit, and is the one that is charged", async () => {
    const first = must(await create({ amount_ceiling: "100" }));
    expect(codeOf(await openNamed("100"))).toBe(201);
    expect(codeOf(await openNamed("1"))).toBe("session_ceiling_exceeded");
    const second = must(await create({ amount_ceiling: "100" }));
    const { session } = ctx.reader.agents;
    expect(session(first.id)).toMatchObject({ revokedAt: TEST_NOW, amountSpent: 100n });
    expect(ctx.reader.agents.liveSession(caller.agentId, TEST_NOW)?.id).toBe(second.id);
    expect(codeOf(await openNamed("100"))).toBe(201);
    expect(session(second.id)?.amountSpent).toBe(100n);
    expect(session(first.id)?.amountSpent).toBe(100n);
  });

  test("of many sessions created at once, one is not revoked", async () => {
    const all = (await Promise.all(Array.from({ length: 10 }, () => create()))).map(must);
    const unrevoked = all.filter(({ id }) => ctx.reader.agents.session(id)?.revokedAt === null);
    expect(unrevoked.map(({ id }) => id)).toEqual([all.at(-1)!.id]);
  });

  const REFUSED: readonly (readonly [string, Partial<SessionInput>, Expected])[] = [
    [
      "a ceiling of 2^63",
      { amount_ceiling: "9223372036854775808" },
      ["validation_failed", "amount_ceiling: "],
    ],
    ["a ceiling with a sign", { amount_ceiling: "-1" }, ["validation_failed", "amount_ceiling: "]],
    ["a ceiling with a point", { amount_ceiling: "1.5" }, ["validation_failed", "amount_ceiling: "]],
    ["no ceiling", { amount_ceiling: "" }, ["validation_failed", "amount_ceiling: "]],
    ["a limit of 0", { warrant_limit: 0 }, ["validation_failed", "warrant_limit: "]],
    ["a limit that is no number", { warrant_limit: Number.NaN }, ["validation_failed", "warrant_limit: "]],
    ["a budget of 0", { failure_budget: 0 }, ["validation_failed", "failure_budget: "]],
    ["a budget above 1,000,000", { failure_budget: 1_000_001 }, ["validation_failed", "failure_budget: "]],
    ["an end without a zone", { expires_at: "2031-01-01T00:00:00" }, ["validation_failed", "expires_at: "]],
    ["an end in the past", { expires_at: "2030-01-15T12:00:00Z" }, ["validation_failed", "expires_at: "]],
    ["an end in ten years", { expires_at: "2040-01-01T00:00:00Z" }, ["validation_failed", "expires_at: "]],
    ["a sum with a sign", { hourly_max: "-1" }, ["validation_failed", "hourly_max: "]],
    ["a sum of 2^63", { daily_max: "9223372036854775808" }, ["validation_failed", "daily_max: "]],
    ["no sum", { per_warrant_max: "" }, ["validation_failed", "per_warrant_max: "]],
    ["no payees", { payees: [] }, ["validation_failed", "payees: must be 1 to 100 entries"]],
    ["a hundred and one payees", { payees: Array(101).fill("a") }, ["validation_failed", "payees: "]],
    ["every payee", { payees: ["a", "*"] }, ["validation_failed", "payees.1: "]],
    [
      "an origin cut off in its host",
      { source_origins: ["https://a.example", "https://a*"] },
      ["validation_failed", "source_origins.1: must not end within the host"],
    ],
    ["an unknown agent", { agent_id: "agt_none" }, ["agent_not_found", ""]],
  ];
  for (const [what, change, expected] of REFUSED) {
    test(`refuses ${what}: no session, and the one before is not revoked`, async () => {
      const { id } = must(await create());
      await expectRefused(ctx, () => create(change), expected);
      expect(ctx.reader.agents.liveSession(caller.agentId, TEST_NOW)?.id).toBe(id);
    });
  }

  test("warns where the agent may leave itself out, and only there", async () => {
    const warning = (await create().then(must)).warning;
    expect(warning).toEndWith(`holdfast agents update ${caller.agentId} --must-be-named on`);
    must(await updateAgent(ctx, MACHINE, { agent_id: caller.agentId, must_be_named: true }));
    expect((await create().then(must)).warning).toBeNull();
    must(await updateAgent(ctx, MACHINE, { agent_id: caller.agentId, must_be_named: false }));
  });

  test("is for admins of the same organisation and mode", async () => {
    const input = { agent_id: caller.agentId, amount_ceiling: "1" };
    const cases: readonly (readonly [Stage["owner"], Expected])[] = [
      [stage.operator, ["insufficient_role", ""]],
      [{ ...stage.owner, organisationId: "org_other" }, ["agent_not_found", ""]],
      [{ ...stage.owner, mode: "sandbox" }, ["agent_not_found", ""]],
    ];
    for (const [authority, expected] of cases)
      await expectRefused(ctx, () => createSession(ctx, authority, input), expected);
    expect(must(await createSession(ctx, stage.admin, input)).amount_ceiling).toBe("1");
  });
});

describe("revokeSession", () => {
  beforeAll(async () => {
    caller = await createCaller(stage);
  });

  test("stops the opens that name the agent; it cannot be undone, and is done once", async () => {
    const { id } = must(await create());
    expect(codeOf(await openNamed())).toBe(201);
    const revoked = must(await revokeSession(ctx, stage.admin, { session_id: id }));
    expect(revoked).toMatchObject({ revoked_at: new Date(TEST_NOW).toISOString(), amount_spent: "100" });
    expect(codeOf(await openNamed())).toBe("session_revoked");
    ctx.clock.now += 1_000;
    expect(must(await revokeSession(ctx, MACHINE, { session_id: id }))).toEqual(revoked);
    ctx.clock.now = TEST_NOW;
  });

  test("revoking an older session leaves the newest one active", async () => {
    const older = must(await create());
    const newest = must(await create());
    expect(must(await revokeSession(ctx, MACHINE, { session_id: older.id })).id).toBe(older.id);
    expect(ctx.reader.agents.liveSession(caller.agentId, TEST_NOW)?.id).toBe(newest.id);
  });

  test("refuses unknown sessions", async () => {
    const { id } = must(await create());
    const other = { ...stage.owner, organisationId: "org_other" };
    const cases: readonly (readonly [() => Promise<unknown>, Expected])[] = [
      [() => revokeSession(ctx, MACHINE, { session_id: "ses_none" }), ["session_not_found", ""]],
      [() => revokeSession(ctx, stage.operator, { session_id: id }), ["insufficient_role", ""]],
      [() => revokeSession(ctx, other, { session_id: id }), ["session_not_found", ""]],
    ];
    for (const [verb, expected] of cases) await expectRefused(ctx, verb, expected);
    expect(ctx.reader.agents.session(id)?.revokedAt).toBeNull();
  });
});
