import type { Context } from "../services/context.ts";
import { followAgentStatus } from "../services/warrants/freeze.ts";

const STEP = 100;
/** How many agents one run works on. The next run works on the others. */
const AGENTS_MAX = 1_000;
/** Where this many fail and none succeeds, the fault is not in single agents, so the whole job fails. */
const FAULTS_MIN = 10;

/** Is called for an agent whose warrants could not all be moved. The run goes on with the others; the next run tries it again. */
type OnFault = (error: unknown, agentId: string) => void;

/**
 * Finishes an interrupted kill or reactivation: freezes or thaws the warrants that are left.
 *
 * @throws the first agent's error, where ten or more were tried and all failed
 */
export async function followAgents(ctx: Context, onFault: OnFault): Promise<void> {
  const tried = new Set<string>();
  const faults: unknown[] = [];
  while (tried.size < AGENTS_MAX) {
    const found = await ctx.store.read((reader) =>
      reader.agents.withStatusToFollow(ctx.now(), tried.size + STEP),
    );
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
