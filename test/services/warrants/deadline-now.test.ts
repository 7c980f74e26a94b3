import { afterEach, beforeEach, expect, test } from "bun:test";
import type { KeyCaller } from "../../../src/core/roles.ts";
import { sweepDeadlines } from "../../../src/jobs/deadlines.ts";
import { setAgentStatus } from "../../../src/services/admin/agents.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { createTestContext, TEST_NOW, type TestContext } from "../../support/context.ts";
import { noFault } from "../../support/no-fault.ts";
import {
  ALL_PASS,
  codeOf,
  createCaller,
  createStage,
  must,
  open,
  SCRIPTED,
  type Stage,
  settle,
  verify,
  warrantIn,
} from "../../support/stage.ts";

/** At the very millisecond of its deadline a warrant has passed it, for everybody who asks. */

const HOUR_MS = 3_600_000;

let ctx: TestContext;
let stage: Stage;
let agent: KeyCaller;
beforeEach(async () => {
  ctx = createTestContext(SCRIPTED);
  stage = await createStage(ctx);
  agent = await createCaller(stage);
});
afterEach(() => ctx.close());

const openUntil = (deadline: number) =>
  open(stage, agent, { agent_id: agent.agentId, deadline: new Date(deadline).toISOString() });
const openedFor = async (ms: number): Promise<string> => warrantIn(await openUntil(TEST_NOW + ms)).id;
const stateOf = (id: string) => ctx.reader.warrants.find(id)?.state;

test("a deadline of now is no deadline for an open, and one of a millisecond later is", async () => {
  expect(codeOf(await openUntil(TEST_NOW))).toBe("deadline_in_past");
  expect(codeOf(await openUntil(TEST_NOW + 1))).toBe(201);
});

test("the sweep takes what is due now, and leaves what is due a millisecond later", async () => {
  const [now, later] = [await openedFor(HOUR_MS), await openedFor(HOUR_MS + 1)];
  ctx.clock.now += HOUR_MS;
  expect(ctx.reader.warrants.overdueCount(ctx.now())).toBe(1);
  expect(await sweepDeadlines(ctx, noFault)).toBe(1);
  expect([stateOf(now), stateOf(later)]).toEqual(["expired", "held"]);
});

test("a check that would begin now comes too late, and one a millisecond earlier does not", async () => {
  const [now, later] = [await openedFor(HOUR_MS), await openedFor(HOUR_MS + 1)];
  ctx.clock.now += HOUR_MS;
  expect(codeOf(await verify(stage, agent, now, ALL_PASS))).toBe("illegal_transition");
  expect(codeOf(await verify(stage, agent, later, ALL_PASS))).toBe(200);
  expect([stateOf(now), stateOf(later)]).toEqual(["expired", "released"]);
});

test("a person settles what is due now, as long as no sweep has taken it", async () => {
  const id = await openedFor(HOUR_MS);
  ctx.clock.now += HOUR_MS;
  expect(codeOf(await settle(stage, stage.operator, id, "release"))).toBe(200);
  expect(await sweepDeadlines(ctx, noFault)).toBe(0);
  expect(stateOf(id)).toBe("released");
});

test("what is due now stays frozen when its agent is active again, and what is due later thaws", async () => {
  const [now, later] = [await openedFor(HOUR_MS), await openedFor(HOUR_MS + 1)];
  const set = (status: "active" | "killed") =>
    setAgentStatus(ctx, MACHINE, { agent_id: agent.agentId, status });
  must(await set("killed"));
  ctx.clock.now += HOUR_MS;
  must(await set("active"));
  expect([stateOf(now), stateOf(later)]).toEqual(["frozen", "held"]);
  // And the job that finishes a reactivation has nothing to do.
  expect(ctx.reader.agents.withStatusToFollow(ctx.now(), 10)).toEqual([]);
});

test("what becomes due between the read of a frozen warrant and its thaw stays frozen", async () => {
  const id = await openedFor(HOUR_MS);
  const set = (on: TestContext, status: "active" | "killed") =>
    setAgentStatus(on, MACHINE, { agent_id: agent.agentId, status });
  must(await set(ctx, "killed"));
  ctx.clock.now += HOUR_MS - 1;
  // A thaw draws the id of its event after it has read the warrant, and before its commit.
  const newId: TestContext["newId"] = (kind) => {
    if (kind === "event") ctx.clock.now += 1;
    return ctx.newId(kind);
  };
  must(await set({ ...ctx, newId }, "active"));
  expect(ctx.now()).toBe(TEST_NOW + HOUR_MS);
  expect(stateOf(id)).toBe("frozen");
});
