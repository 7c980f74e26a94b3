import { hashJson } from "../../core/canonical.ts";
import { isRefusal, type Refusal, refuseField } from "../../core/errors.ts";
import { type Policy, parsePolicyRules } from "../../core/policy.ts";
import { policyResource } from "../../resources/policy.ts";
import type { Audited } from "../audited.ts";
import type { Context } from "../context.ts";
import { refuseText } from "../fields.ts";
import { agentNotFound, findAgent } from "./agents.ts";
import { type Authority, administer, refuseAuthority } from "./authority.ts";

export type PolicyInput = {
  readonly organisation_id: string;
  readonly name: string;
  readonly rules: unknown;
  /** The agent that the policy is for. Without it, the policy is the organisation's default. */
  readonly agent_id?: string;
};

type PolicyResource = ReturnType<typeof policyResource>;

/**
 * Saves a policy: version 1 of a new name, or the next version of a known one. No saved version is ever
 * edited.
 */
export async function createPolicy(
  ctx: Context,
  authority: Authority,
  input: PolicyInput,
): Promise<PolicyResource | Refusal> {
  const refused = refuseAuthority(authority, "admin") ?? refuseText("name", input.name);
  if (refused) return refused;
  const rules = parsePolicyRules(input.rules);
  if (isRefusal(rules)) return rules;
  const rulesHash = hashOf(rules);
  if (rulesHash === null) return refuseField("rules", "must be JSON of finite numbers and well-formed text");
  const { organisation_id: organisationId, agent_id: agentId } = input;
  const agent =
    agentId === undefined ? null : await ctx.store.read((reader) => findAgent(reader, authority, agentId));
  if (isRefusal(agent)) return agent;
  const id = ctx.newId("policy");
  const named = { agentId: agent?.id ?? null, name: input.name };
  return administer(ctx, authority, "admin", {
    scope: { organisationId, mode: agent?.mode ?? "live" },
    needs: { policyNamed: named, agent: named.agentId },
    decide: (snapshot, now): Audited<PolicyResource> => {
      // An agent of another organisation is not in the scope.
      if (agent && !snapshot.agent) return { answer: agentNotFound(agent.id) };
      const version = (snapshot.policyNamed?.version ?? 0) + 1;
      const row: Policy = { id, organisationId, ...named, version, rules, rulesHash, createdAt: now };
      const answer = policyResource(row);
      return {
        answer,
        put: [{ kind: "policy", row }],
        entries: [{ action: "policy.created", subject: id, before: null, after: answer }],
      };
    },
  });
}

/** Null where the rules cannot be hashed: a label may contain a lone surrogate. */
function hashOf(rules: unknown): string | null {
  try {
    return hashJson(rules);
  } catch {
    return null;
  }
}
