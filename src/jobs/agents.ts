import type { Context } from "../services/context.ts";
import { followAgentStatus } from "../services/warrants/freeze.ts";

const AGENTS_MAX = 100;

/** Finishes what an interrupted kill or reactivation left: warrants still to be frozen, or to be thawed. */
export async function followAgents(ctx: Context): Promise<void> {
  for (const agent of ctx.store.reader.agents.withStatusToFollow(AGENTS_MAX))
    await followAgentStatus(ctx, agent);
}
