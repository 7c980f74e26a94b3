import type { Agent } from "../core/agent.ts";
import type { Policy } from "../core/policy.ts";
import { agentResource } from "../resources/agent.ts";
import type { Reader } from "../store/reader.ts";
import type { Context } from "./context.ts";

/**
 * An agent with the policy that applies to it, its live session and the counts of its warrants.
 *
 * @param organisationPolicy the organisation's default policy, where the caller has read it already
 */
export async function agentDetails(
  { baseUrl, now }: Pick<Context, "baseUrl" | "now">,
  reader: Reader,
  agent: Agent,
  organisationPolicy?: Policy | null,
) {
  const { agents, policies } = reader;
  const defaultPolicy =
    organisationPolicy === undefined
      ? await policies.ofOrganisation(agent.organisationId)
      : organisationPolicy;
  return agentResource(agent, {
    baseUrl,
    policy: (await agents.ownPolicy(agent.id)) ?? defaultPolicy,
    session: await agents.liveSession(agent.id, now()),
    countsByState: await agents.countsByState(agent),
  });
}
