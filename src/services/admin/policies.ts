import { hashJson } from "../../core/canonical.ts";
import { isRefusal, type Refusal, refuseField } from "../../core/errors.ts";
import { type Policy, parsePolicyRules } from "../../core/policy.ts";
import type { Context } from "../context.ts";
import { policyResource } from "../resources.ts";
import { recordingAct } from "./acts.ts";
import { agentNotFound, findAgent } from "./agents.ts";
import { type Authority, administer, refuseAuthority, refuseOrganisation } from "./authority.ts";
import { refuseText } from "./fields.ts";

export type PolicyInput = {
  readonly organisation_id: string;
  readonly name: string;
  readonly rules: unknown;
  /** Whose policy it is; without it, the organisation's. */
  readonly agent_id?: string;
};

/** Saves a policy: version 1 of a new name, else the next version of it. Nothing that exists is edited. */
export async function createPolicy(
  ctx: Context,
  authority: Authority,
  input: PolicyInput,
): Promise<ReturnType<typeof policyResource> | Refusal> {
  const refused = refuseAuthority(authority, "admin") ?? refuseText("name", input.name);
  if (refused) return refused;
  const rules = parsePolicyRules(input.rules);
  if (isRefusal(rules)) return rules;
  const rulesHash = hashOf(rules);
  if (rulesHash === null) return refuseField("rules", "must be JSON of finite numbers and well-formed text");
  const agent = input.agent_id === undefined ? null : findAgent(ctx, authority, input.agent_id);
  if (isRefusal(agent)) return agent;
  const id = ctx.newId("policy");
  const createdAt = ctx.now();
  const record = recordingAct(ctx, authority, "policy.created");
  const named = { agentId: agent?.id ?? null, name: input.name };
  return administer(ctx, authority, "admin", {
    scope: { organisationId: input.organisation_id, mode: agent?.mode ?? "live" },
    needs: { organisation: true, policyNamed: named, ...(agent && { agentId: agent.id }) },
    decide: (snapshot) => {
      const unknown = refuseOrganisation(authority, snapshot.organisation);
      if (unknown) return { answer: unknown };
      // An agent of another organisation is not in the scope.
      if (agent && !snapshot.agent) return { answer: agentNotFound(agent.id) };
      const version = (snapshot.policyNewest?.version ?? 0) + 1;
      const { organisation_id: organisationId } = input;
      const policy: Policy = { id, organisationId, ...named, version, rules, rulesHash, createdAt };
      const answer = policyResource(policy);
      const act = record(organisationId, id, null, answer);
      return { answer, change: { rows: [{ kind: "policy", row: policy }, act] } };
    },
  });
}

/** Null where the rules cannot be hashed: a label may hold half a character. */
function hashOf(rules: unknown): string | null {
  try {
    return hashJson(rules);
  } catch {
    return null;
  }
}
