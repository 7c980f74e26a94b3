import type { Context } from "../services/context.ts";
import { followAgentStatus } from "../services/warrants/freeze.ts";

const STEP = 100;
/** How many one run follows; the others have their turn in the next. */
const AGENTS_MAX = 1_000;
/** Where so many fail and none succeeds, it is not the agents: the job fails. */
const FAULTS_MIN = 10;

/** Is called for an agent that could not be followed to the end; the others are, and it is tried again in the next run. */
type OnFault = (error: unknown, agentId: string) => void;

/**
 * Finishes what an interrupted kill or reactivation left: warrants still to be frozen, or to be thawed.
 *
 * @throws what kept the first agent from it, where none could be followed of ten or more
 */
export async function followAgents(ctx: Context, onFault: OnFault): Promise<void> {
  const tried = new Set<string>();
  const faults: unknown[] = [];
  while (tried.size < AGENTS_MAX) {
    const found = await ctx.store.read((reader) => reader.agents.withStatusToFollow(tried.size + STEP));
    const step = found.filter(({ id }) => !tried.has(id));
    if (step.length === 0) break;
    for (const agent of step) {
      tried.add(agent.id);
      try {
        await followAgentStatus(ctx, agent);
      } catch (error) {
        faults.push(error);
        onFault(error, agent.id);
      }
    }
  }
  if (faults.length >= FAULTS_MIN && faults.length === tried.size) throw faults[0];
}
