import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { KeyCaller } from "../../../src/core/roles.ts";
import { setAgentStatus } from "../../../src/services/admin/agents.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { createSession, type SessionInput } from "../../../src/services/admin/sessions.ts";
import { readAgentDetail, readConsequences } from "../../../src/services/console/agents.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { createCaller, createStage, must, open, type Stage, settle, warrantIn } from "../../support/stage.ts";

/** What people see of an agent, where time passes. */

let ctx: TestContext;
let stage: Stage;
let agent: KeyCaller;
beforeEach(async () => {
  ctx = createTestContext();
  stage = await createStage(ctx);
  agent = await createCaller(stage);
});
afterEach(() => ctx.close());

const MINUTE_MS = 60_000;
const give = (input: Partial<SessionInput> = {}) =>
  createSession(ctx, MACHINE, { agent_id: agent.agentId, amount_ceiling: "1000", ...input }).then(must);
const opens = async (amount: string, minutes = 60) =>
  warrantIn(
    await open(stage, agent, {
      ...{ amount, agent_id: agent.agentId },
      deadline: new Date(ctx.now() + minutes * MINUTE_MS).toISOString(),
    }),
  );
const budget = async () => must(await readAgentDetail(ctx, stage.admin, agent.agentId)).budget!;
const becomes = (status: "active" | "killed") =>
  setAgentStatus(ctx, MACHINE, { agent_id: agent.agentId, status }).then(must);
const consequences = (change: "pause" | "activate" | "kill") =>
  readConsequences(ctx, stage.admin, agent.agentId, change).then(must);

describe("what is used of a window", () => {
  test("leaves it after its time, and what returned stays in it", async () => {
    await give({ hourly_max: "500", daily_max: "900" });
    const { id } = await opens("100");
    ctx.clock.now += 40 * MINUTE_MS;
    await opens("30");
    must(await settle(stage, stage.operator, id, "refund"));
    expect(await budget()).toMatchObject({ hourUsed: 130n, dayUsed: 130n, session: { amountSpent: 30n } });
    ctx.clock.now += 20 * MINUTE_MS - 1;
    expect(await budget()).toMatchObject({ hourUsed: 130n, dayUsed: 130n });
    ctx.clock.now += 1;
    expect(await budget()).toMatchObject({ hourUsed: 30n, dayUsed: 130n });
    ctx.clock.now += 24 * 60 * MINUTE_MS;
    expect(await budget()).toMatchObject({ hourUsed: 0n, dayUsed: 0n });
  });

  test("is not shown where the session does not limit it", async () => {
    await give({ hourly_max: "500" });
    await opens("100");
    expect(await budget()).toMatchObject({ hourUsed: 100n, dayUsed: null });
  });

  test("is not less because the clock was set back", async () => {
    await give({ hourly_max: "500" });
    await opens("100");
    ctx.clock.now -= 30 * 24 * 60 * MINUTE_MS;
    expect((await budget()).hourUsed).toBe(100n);
  });
});

test("a session is live until its end", async () => {
  await give({ expires_at: new Date(ctx.now() + MINUTE_MS).toISOString() });
  ctx.clock.now += MINUTE_MS - 1;
  expect((await budget()).end).toBeNull();
  ctx.clock.now += 1;
  expect((await budget()).end).toBe("expired");
});

describe("what becomes active again", () => {
  test("leaves frozen what is past its deadline", async () => {
    await opens("100", 10);
    await opens("30", 60);
    expect(await consequences("kill")).toMatchObject({
      moving: { count: 2, amounts: [{ asset: "USDC", amount: 130n }], isAll: true },
      staying: { count: 0 },
    });
    await becomes("killed");
    ctx.clock.now += 10 * MINUTE_MS;
    const { moving, staying, some } = await consequences("activate");
    expect(moving).toMatchObject({ count: 1, amounts: [{ asset: "USDC", amount: 30n }] });
    expect(staying).toMatchObject({ count: 1, amounts: [{ asset: "USDC", amount: 100n }] });
    await becomes("active");
    const items = ctx.reader.warrants.byCreation(agent, {}, {}, 10);
    expect(items.map(({ state }) => state)).toEqual(["held", "frozen"]);
    expect(some.map(({ id }) => id)).toEqual([items[0]!.id]);
  });

  test("is counted with what its keys opened without naming it, and without what others did", async () => {
    const other = await createCaller(stage);
    must(await open(stage, agent, { amount: "7" }));
    must(await open(stage, other, { amount: "1000" }));
    expect(await consequences("kill")).toMatchObject({ moving: { count: 1, amounts: [{ amount: 7n }] } });
    expect(await consequences("pause")).toMatchObject({
      moving: { count: 0 },
      staying: { count: 1, amounts: [{ amount: 7n }] },
    });
  });
});
