import type { Agent } from "../core/agent.ts";
import type { Policy } from "../core/policy.ts";
import { agentResource } from "../resources/agent.ts";
import type { Reader } from "../store/reader.ts";

/**
 * An agent with the policy that applies to it, its live session and the counts of its warrants.
 *
 * @param now epoch milliseconds; a session that has expired by then is not live
 * @param organisationPolicy the organisation's default policy, where the caller has read it already
 */
export async function agentDetails(
  reader: Reader,
  agent: Agent,
  now: number,
  organisationPolicy?: Policy | null,
) {
  const { agents, policies } = reader;
  const defaultPolicy =
    organisationPolicy === undefined
      ? await policies.ofOrganisation(agent.organisationId)
      : organisationPolicy;
  return agentResource(agent, {
    policy: (await agents.ownPolicy(agent.id)) ?? defaultPolicy,
    session: await agents.liveSession(agent.id, now),
    countsByState: await agents.countsByState(agent),
  });
}
