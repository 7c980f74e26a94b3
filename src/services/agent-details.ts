import type { Agent } from "../core/agent.ts";
import type { Context } from "./context.ts";
import { agentResource } from "./resources.ts";

/** An agent as it is read back: with the policy that applies to it, its live session and its warrants' counts. */
export function agentDetails(
  ctx: Context,
  agent: Agent,
  organisationPolicy = ctx.store.reader.policies.ofOrganisation(agent.organisationId),
) {
  const { agents } = ctx.store.reader;
  return agentResource(agent, {
    policy: agents.ownPolicy(agent.id) ?? organisationPolicy,
    session: agents.liveSession(agent.id, ctx.now()),
    countsByState: agents.countsByState(agent),
  });
}
