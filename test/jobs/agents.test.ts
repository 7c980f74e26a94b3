import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { AgentStatus } from "../../src/core/agent.ts";
import type { KeyCaller } from "../../src/core/roles.ts";
import { followAgents } from "../../src/jobs/agents.ts";
import type { Context } from "../../src/services/context.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { failingOn, withCommands } from "../support/failing-commands.ts";
import { noFault } from "../support/no-fault.ts";
import { createCaller, createStage, open, type Stage, warrantIn } from "../support/stage.ts";

/** A kill writes the status first, and then freezes in batches. Where it is interrupted, a job finishes it. */

let ctx: TestContext;
let stage: Stage;
let key: KeyCaller;
beforeEach(async () => {
  ctx = createTestContext();
  stage = await createStage(ctx);
  key = await createCaller(stage);
});
afterEach(() => ctx.close());

/** The ledger after `agents set-status` was interrupted after its first commit. */
const setStatusOnly = (status: AgentStatus) =>
  ctx.store.execute({
    scope: stage,
    needs: { agent: key.agentId },
    decide: ({ agent }) => ({
      answer: true,
      change: { put: agent ? [{ kind: "agent", before: agent, row: { ...agent, status } }] : [] },
    }),
  });

test("an interrupted kill is finished, and so is an interrupted reactivation", async () => {
  const mine = warrantIn(await open(stage, key, { agent_id: key.agentId })).id;
  const other = warrantIn(await open(stage, stage.operator)).id;
  const states = () => [mine, other].map((id) => ctx.reader.warrants.find(id)?.state);

  await setStatusOnly("killed");
  await followAgents(ctx, noFault);
  expect(states()).toEqual(["frozen", "held"]);
  await followAgents(ctx, noFault);
  expect(ctx.reader.escalations.list(stage, 10)).toHaveLength(1);

  await setStatusOnly("active");
  await followAgents(ctx, noFault);
  expect(states()).toEqual(["held", "held"]);
  expect(ctx.reader.agents.withStatusToFollow(ctx.now(), 10)).toEqual([]);
});

describe("where commands throw", () => {
  type Doomed = { readonly agentId: string; readonly warrants: readonly string[] };

  /** An agent that was killed, whose warrants are still held. */
  async function doomed(warrants: number): Promise<Doomed> {
    const its = await createCaller(stage);
    const answers = await Promise.all(
      Array.from({ length: warrants }, () => open(stage, its, { agent_id: its.agentId })),
    );
    await ctx.store.execute({
      scope: stage,
      needs: { agent: its.agentId },
      decide: ({ agent }) => ({
        answer: true,
        change: { put: agent ? [{ kind: "agent", before: agent, row: { ...agent, status: "killed" } }] : [] },
      }),
    });
    return { agentId: its.agentId, warrants: answers.map((answer) => warrantIn(answer).id) };
  }
  const failing = (stuck: readonly string[]): Context => failingOn(ctx, new Set(stuck));
  const heldOf = (agents: readonly Doomed[]): string[] =>
    agents.flatMap(({ warrants }) => warrants).filter((id) => ctx.reader.warrants.find(id)?.state === "held");

  test("an agent's fault is reported, and stops neither its other warrants nor the agents after it", async () => {
    const agents = [];
    for (let count = 0; count < 110; count++) agents.push(await doomed(count === 50 ? 205 : 1));
    const stuck = agents.slice(0, 105).map(({ warrants }) => warrants[0]!);
    const reported: string[] = [];
    await followAgents(failing(stuck), (error, id) => void reported.push(`${error} ${id}`));
    expect(reported.toSorted()).toEqual(
      agents
        .slice(0, 105)
        .map(({ agentId }) => `Error: broken ${agentId}`)
        .toSorted(),
    );
    expect(heldOf(agents).toSorted()).toEqual(stuck.toSorted());
    await followAgents(ctx, noFault);
    expect(heldOf(agents)).toEqual([]);
    // It makes 110 agents one after the other, which takes long on a busy machine.
  }, 30_000);

  test("where the first of an agent's warrants all fail, and are many, the last is frozen in the same run", async () => {
    const agent = await doomed(260);
    const { reader } = ctx;
    const inTurn = reader.warrants.ofAgent(agent.agentId, "held", -1, 300).map(({ id }) => id);
    const stuck = inTurn.slice(0, 255);
    const reported: string[] = [];
    await followAgents(failing(stuck), (error, id) => void reported.push(`${error} ${id}`));
    expect(reported).toEqual([`Error: broken ${agent.agentId}`]);
    expect(heldOf([agent]).toSorted()).toEqual(stuck.toSorted());
    await followAgents(ctx, noFault);
    expect(heldOf([agent])).toEqual([]);
  });

  test("one commit freezes fifty at most, so that requests have their turn", async () => {
    const agent = await doomed(120);
    let waiting = 0;
    const together: number[] = [];
    const counted = withCommands(ctx, (_, go) => {
      together.push(++waiting);
      return go().finally(() => waiting--);
    });
    await followAgents(counted, noFault);
    expect(heldOf([agent])).toEqual([]);
    expect(Math.max(...together)).toBe(50);
  });

  test("the job fails where all of ten agents fail", async () => {
    const agents = [];
    for (let count = 0; count < 10; count++) agents.push(await doomed(1));
    const all = heldOf(agents);
    await expect(followAgents(failing(all), () => {})).rejects.toThrow("broken");
    await followAgents(failing(all.slice(1)), () => {});
    expect(heldOf(agents)).toHaveLength(9);
    await followAgents(failing(all), () => {});
  });
});
