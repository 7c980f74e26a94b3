import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { AgentStatus } from "../../../src/core/agent.ts";
import type { Caller, KeyCaller } from "../../../src/core/roles.ts";
import { followAgents } from "../../../src/jobs/agents.ts";
import { setAgentStatus } from "../../../src/services/admin/agents.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { createSession } from "../../../src/services/admin/sessions.ts";
import { interruptCheck } from "../../../src/services/warrants/interrupt.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { noFault } from "../../support/no-fault.ts";
import {
  codeOf,
  createCaller,
  createStage,
  must,
  NONE_PASS,
  open,
  SCRIPTED,
  type Stage,
  verify,
  warrantIn,
} from "../../support/stage.ts";

/** The kill rule holds for the agent that a warrant names, and for the one whose key opened it. */

let ctx: TestContext;
let stage: Stage;
let key: KeyCaller;
/** Is called while a check fetches. */
let meanwhile: () => Promise<unknown>;

beforeEach(async () => {
  meanwhile = async () => {};
  ctx = createTestContext({
    ...SCRIPTED,
    fetchEvidence: async (...asked) => {
      await meanwhile();
      return SCRIPTED.fetchEvidence(...asked);
    },
  });
  stage = await createStage(ctx);
  key = await createCaller(stage);
});
afterEach(() => ctx.close());

const set = async (status: AgentStatus) =>
  must(await setAgentStatus(ctx, MACHINE, { agent_id: key.agentId, status }));
const kill = () => set("killed");
/** A kill whose process ended before it froze anything. */
const killStatusOnly = () =>
  ctx.store.execute({
    scope: stage,
    needs: { agent: key.agentId },
    decide: ({ agent }) => ({
      answer: true,
      change: { put: [{ kind: "agent", before: agent, row: { ...agent!, status: "killed" } }] },
    }),
  });
const rowOf = (id: string) => ctx.reader.warrants.find(id)!;
const stateOf = (id: string) => rowOf(id).state;
const waiting = () => ctx.reader.escalations.list(stage, 10).filter(({ status }) => status !== "resolved");

describe.each<[what: string, opener: () => Caller, isNamed: boolean]>([
  ["that its key names", () => key, true],
  ["whose key names none", () => key, false],
  ["that a person names", () => stage.operator, true],
])("of an agent %s", (_, opener, isNamed) => {
  let id: string;
  beforeEach(async () => {
    id = warrantIn(await open(stage, opener(), isNamed ? { agent_id: key.agentId } : {})).id;
  });

  test("a held warrant is frozen by a kill, and held again once the agent is active", async () => {
    const strangers = [
      warrantIn(await open(stage, stage.operator)).id,
      warrantIn(await open(stage, await createCaller(stage))).id,
    ];
    await kill();
    expect(stateOf(id)).toBe("frozen");
    expect(waiting()).toMatchObject([{ warrantId: id, reasonCodes: ["agent_killed"] }]);
    await set("paused");
    expect(stateOf(id)).toBe("frozen");
    await set("active");
    expect(stateOf(id)).toBe("held");
    expect(waiting()).toEqual([]);
    expect(strangers.map(stateOf)).toEqual(["held", "held"]);
  });

  test("a frozen warrant whose deadline has passed stays frozen, and nobody has failed", async () => {
    await kill();
    ctx.clock.now = rowOf(id).deadline;
    const agent = await set("active");
    expect([stateOf(id), agent.failure_count]).toEqual(["frozen", 0]);
    expect(ctx.reader.agents.withStatusToFollow(ctx.now(), 10)).toEqual([]);
  });

  test("an interrupted kill is finished by the job; no check begins before", async () => {
    await killStatusOnly();
    expect(codeOf(await verify(stage, stage.operator, id))).toBe("illegal_transition");
    expect(stateOf(id)).toBe("held");
    await followAgents(ctx, noFault);
    expect(stateOf(id)).toBe("frozen");
    expect(ctx.reader.agents.withStatusToFollow(ctx.now(), 10)).toEqual([]);
  });

  test("a check that was under way pays nobody", async () => {
    meanwhile = kill;
    expect(warrantIn(await verify(stage, stage.operator, id)).state).toBe("escalated");
    expect(waiting()).toMatchObject([{ warrantId: id, score: 10_000, reasonCodes: ["agent_killed"] }]);
  });

  test("a check that was under way and is interrupted leaves it frozen", async () => {
    meanwhile = async () => {
      await kill();
      expect(await interruptCheck(ctx, rowOf(id))).toBe(true);
    };
    expect(codeOf(await verify(stage, stage.operator, id))).toBe("version_conflict");
    expect(stateOf(id)).toBe("frozen");
  });
});

test("a warrant keeps who opened it, and answers do not show it", async () => {
  const answers = [await open(stage, key), await open(stage, stage.operator, { agent_id: key.agentId })];
  expect(answers.map((answer) => rowOf(warrantIn(answer).id).openedBy)).toEqual([
    { kind: "agent", id: key.agentId },
    { kind: "user", id: stage.operator.userId },
  ]);
  for (const answer of answers) expect(JSON.stringify(warrantIn(answer))).not.toContain("opened_by");
});

test("session and failures still belong to the agent that is named, not to the one whose key opened it", async () => {
  must(await createSession(ctx, MACHINE, { agent_id: key.agentId, amount_ceiling: "1000" }));
  const { id } = warrantIn(await open(stage, key));
  must(await verify(stage, key, id, NONE_PASS));
  expect(rowOf(id)).toMatchObject({ agentId: null, sessionId: null });
  expect(ctx.reader.agents.get(key.agentId)?.failureCount).toBe(0);
  expect(ctx.reader.agents.liveSession(key.agentId, ctx.now())).toMatchObject({
    amountSpent: 0n,
    warrantCount: 0,
    failureCount: 0,
  });
});
