import { afterEach, beforeEach, expect, test } from "bun:test";
import type { AgentStatus } from "../../src/core/agent.ts";
import type { KeyCaller } from "../../src/core/roles.ts";
import { followAgents } from "../../src/jobs/agents.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { createCaller, createStage, open, type Stage, warrantIn } from "../support/stage.ts";

/** A kill writes the status first and freezes in batches: what an interruption leaves, a job finishes. */

let ctx: TestContext;
let stage: Stage;
let key: KeyCaller;
beforeEach(async () => {
  ctx = createTestContext();
  stage = await createStage(ctx);
  key = await createCaller(stage);
});
afterEach(() => ctx.close());

/** What `agents set-status` leaves when it is cut off after its first commit. */
const setStatusOnly = (status: AgentStatus) =>
  ctx.store.execute({
    scope: stage,
    needs: { agentId: key.agentId },
    decide: ({ agent }) => ({
      answer: true,
      change: { rows: agent ? [{ kind: "agent", row: { ...agent, status } }] : [] },
    }),
  });

test("an interrupted kill is finished, and so is an interrupted return", async () => {
  const mine = warrantIn(await open(stage, key, { agent_id: key.agentId })).id;
  const other = warrantIn(await open(stage, stage.operator)).id;
  const states = () => [mine, other].map((id) => ctx.store.reader.warrants.find(id)?.state);

  await setStatusOnly("killed");
  await followAgents(ctx);
  expect(states()).toEqual(["frozen", "held"]);
  await followAgents(ctx);
  expect(ctx.store.reader.escalations.list(stage, 10)).toHaveLength(1);

  await setStatusOnly("active");
  await followAgents(ctx);
  expect(states()).toEqual(["held", "held"]);
  expect(ctx.store.reader.agents.withStatusToFollow(10)).toEqual([]);
});
