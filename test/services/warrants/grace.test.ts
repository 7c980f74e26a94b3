import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { KeyCaller } from "../../../src/core/roles.ts";
import { followAgents } from "../../../src/jobs/agents.ts";
import { sweepDeadlines } from "../../../src/jobs/deadlines.ts";
import { recoverAtStart, recoverOverdueChecks } from "../../../src/jobs/recover.ts";
import { EvaluatorBusy, EvaluatorUnavailable } from "../../../src/platform/evaluator-pool.ts";
import { setAgentStatus } from "../../../src/services/admin/agents.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { noFault } from "../../support/no-fault.ts";
import {
  codeOf,
  createCaller,
  createStage,
  must,
  open,
  SCRIPTED,
  type Stage,
  verify,
  warrantIn,
} from "../../support/stage.ts";
import { until } from "../../support/until.ts";

/** A check that began before the deadline, and that the service interrupted, keeps its right to another. */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

let ctx: TestContext;
let stage: Stage;
let agent: KeyCaller;
let id: string;
let fault: Error | null;
/** A fetch waits here. */
let gate: PromiseWithResolvers<void>;
let running: Promise<unknown>;

beforeEach(async () => {
  fault = null;
  gate = Promise.withResolvers();
  ctx = createTestContext({
    ...SCRIPTED,
    fetchEvidence: async (...asked) => {
      await gate.promise;
      return SCRIPTED.fetchEvidence(...asked);
    },
    evaluate: async (request) => {
      if (fault) throw fault;
      return SCRIPTED.evaluate(request);
    },
  });
  stage = await createStage(ctx, { funds: "1000" });
  agent = await createCaller(stage, { failure_budget: 1 });
  id = warrantIn(await open(stage, agent, { agent_id: agent.agentId })).id;
  ctx.clock.now += HOUR_MS - 1;
  running = begin();
  await until("its check has begun", () => state() === "verifying");
});
afterEach(async () => {
  gate.resolve();
  await running;
  await ctx.close();
});

const begin = () => verify(stage, agent, id).catch((error) => error);
const state = () => ctx.reader.warrants.find(id)?.state;
const sweep = () => sweepDeadlines(ctx, noFault);
const failures = () => ctx.reader.agents.get(agent.agentId)?.failureCount;

/** How the service interrupts a check. */
const WAYS: readonly (readonly [string, () => Promise<unknown>])[] = [
  ["a restart", () => recoverAtStart(ctx, noFault)],
  [
    "a lease that ran out",
    () => {
      ctx.clock.now += 4 * MINUTE_MS;
      return recoverOverdueChecks(ctx, noFault);
    },
  ],
  ...[new EvaluatorBusy("busy"), new EvaluatorUnavailable("closed")].map(
    (error) =>
      [
        error.constructor.name,
        () => {
          fault = error;
          gate.resolve();
          return running;
        },
      ] as const,
  ),
];

describe.each(WAYS)("interrupted after its deadline by %s", (_, interrupt) => {
  beforeEach(async () => {
    ctx.clock.now += MINUTE_MS;
    expect(await sweep()).toBe(0);
    await interrupt();
    fault = null;
    gate.resolve();
    await running;
  });

  test("it is held, not swept, and verified within ten minutes; nobody has failed", async () => {
    ctx.clock.now += 10 * MINUTE_MS - 1;
    expect(await sweep()).toBe(0);
    expect([ctx.reader.warrants.overdueCount(ctx.now()), state(), failures()]).toEqual([0, "held", 0]);
    expect(codeOf(await verify(stage, agent, id))).toBe(200);
    expect([state(), failures()]).toEqual(["released", 0]);
  });

  test("after ten minutes it expires, by the sweep and by a verify", async () => {
    ctx.clock.now += 10 * MINUTE_MS;
    expect(ctx.reader.warrants.overdueCount(ctx.now())).toBe(1);
    const other = warrantIn(await open(stage, agent)).id;
    expect([await sweep(), state(), ctx.reader.warrants.find(other)?.state]).toEqual([1, "expired", "held"]);
    expect(codeOf(await verify(stage, agent, id))).toBe("illegal_transition");
  });
});

test("a verify at the end of the grace expires it", async () => {
  await recoverAtStart(ctx, noFault);
  ctx.clock.now += 10 * MINUTE_MS;
  expect([codeOf(await verify(stage, agent, id)), state()]).toEqual(["illegal_transition", "expired"]);
});

test("however often it is interrupted, it expires an hour after its deadline", async () => {
  const deadline = ctx.now() + 1;
  for (let count = 0; count < 7; count++) {
    await recoverAtStart(ctx, noFault);
    ctx.clock.now += 10 * MINUTE_MS - 1;
    void begin();
    if (count < 6) await until("another check has begun", () => state() === "verifying");
  }
  await until("the last one came too late", () => state() === "expired");
  expect(ctx.now()).toBeGreaterThanOrEqual(deadline + HOUR_MS);
});

test("frozen meanwhile, it is held again while its grace lasts, and stays frozen after that", async () => {
  const frozenAfter = async (ms: number) => {
    must(await setAgentStatus(ctx, MACHINE, { agent_id: agent.agentId, status: "killed" }));
    await recoverAtStart(ctx, noFault);
    expect(state()).toBe("frozen");
    ctx.clock.now += ms;
    must(await setAgentStatus(ctx, MACHINE, { agent_id: agent.agentId, status: "active" }));
    return state();
  };
  expect(await frozenAfter(10 * MINUTE_MS - 2)).toBe("held");
  void begin();
  await until("another check has begun", () => state() === "verifying");
  expect(await frozenAfter(10 * MINUTE_MS)).toBe("frozen");
  await followAgents(ctx, noFault);
  expect([state(), failures(), await sweep()]).toEqual(["frozen", 0, 0]);
});

test("frozen since its key opened it, it is held again within its grace too", async () => {
  const deadline = new Date(ctx.now() + 1).toISOString();
  const other = warrantIn(await open(stage, agent, { deadline })).id;
  const checked = verify(stage, agent, other);
  const otherState = () => ctx.reader.warrants.find(other)?.state;
  await until("its check has begun", () => otherState() === "verifying");
  must(await setAgentStatus(ctx, MACHINE, { agent_id: agent.agentId, status: "killed" }));
  await recoverAtStart(ctx, noFault);
  ctx.clock.now += MINUTE_MS;
  expect(otherState()).toBe("frozen");
  must(await setAgentStatus(ctx, MACHINE, { agent_id: agent.agentId, status: "active" }));
  expect(otherState()).toBe("held");
  gate.resolve();
  await checked;
});

test("where a reactivation was interrupted, the job finds what is frozen in its grace", async () => {
  must(await setAgentStatus(ctx, MACHINE, { agent_id: agent.agentId, status: "killed" }));
  await recoverAtStart(ctx, noFault);
  await ctx.store.execute({
    scope: stage,
    needs: { agent: agent.agentId },
    decide: ({ agent: before }) => ({
      answer: true,
      change: { put: before ? [{ kind: "agent", before, row: { ...before, status: "active" } }] : [] },
    }),
  });
  ctx.clock.now += MINUTE_MS;
  await followAgents(ctx, noFault);
  expect(state()).toBe("held");
});
