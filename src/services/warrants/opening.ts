import { type Clause, parseClauses, refuseJsonPath, schemaNamesOf } from "../../core/clauses/registry.ts";
import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import type { NamedSchema } from "../../core/named-schema.ts";
import type { Organisation } from "../../core/organisation.ts";
import type { Caller } from "../../core/roles.ts";
import type { GivenTerms } from "../../core/warrant.ts";
import type { From, Snapshot } from "../../store/needs.ts";
import { isBuiltIn } from "../built-in-schemas.ts";
import type { CredentialNeeds } from "../caller-now.ts";
import { refuseUnacknowledged } from "../instance.ts";

/** The checks of an open and of a purchase that do not depend on the amount. */

/** An opening after all its fields were parsed. Times are epoch milliseconds. */
export type Opening = GivenTerms & {
  readonly clauses: readonly Clause[];
  /** The URL that is bought from; null where a verify names the source later. */
  readonly sourceUrl: string | null;
};

/** The clauses of a spec, or the refusal of the first clause that is wrong. */
export function parseSpec(spec: { readonly clauses: readonly unknown[] }): readonly Clause[] | Refusal {
  const clauses = parseClauses(spec.clauses, "spec.clauses");
  if (isRefusal(clauses)) return clauses;
  for (const [index, clause] of clauses.entries()) {
    const unsupported = refuseJsonPath(clause, `spec.clauses.${index}`);
    if (unsupported) return unsupported;
  }
  return clauses;
}

/** The needs of the checks before the amount: what the opening names, and what follows from it. */
export const openingNeeds = ({ agentId, policyId, verifierId, clauses }: Opening) => ({
  agent: agentId,
  agentSession: OF_AGENT,
  policy: policyId,
  verifier: verifierId,
  schemas: schemaNamesOf(clauses),
});

export type OpeningNeeds = ReturnType<typeof openingNeeds>;

export const OF_AGENT: From<"agent"> = { from: "agent" };

/** The refusal of an opening for reasons other than its amount; null where there is no such reason. */
export const refuseOpening = (
  snapshot: Snapshot<OpeningNeeds & CredentialNeeds>,
  caller: Caller,
  opening: Opening,
): Refusal | null =>
  refuseUnknownResource(snapshot, opening) ??
  refuseUnacknowledged(snapshot.instance, caller.mode) ??
  refuseStopped(snapshot.organisation) ??
  refuseAgent(snapshot, caller, opening);

export function refuseUnknownSchema(
  { schemas }: { readonly schemas: readonly NamedSchema[] },
  clauses: readonly Clause[],
): Refusal | null {
  const known = new Set(schemas.map((schema) => schema.name));
  for (const [index, clause] of clauses.entries()) {
    if (clause.kind === "json.schema" && !known.has(clause.schema) && !isBuiltIn(clause.schema)) {
      return refuseField(
        `spec.clauses.${index}.schema`,
        `there is no schema named ${JSON.stringify(clause.schema)}`,
      );
    }
  }
  return null;
}

function refuseUnknownResource(snapshot: Snapshot<OpeningNeeds>, opening: Opening): Refusal | null {
  if (opening.agentId !== null && !snapshot.agent) {
    return refuse("agent_not_found", `agent_id: there is no agent ${opening.agentId} in this mode.`);
  }
  if (opening.policyId !== null && !snapshot.policy) {
    return refuse("policy_not_found", `policy_id: there is no policy ${opening.policyId}.`);
  }
  return opening.verifierId !== null && !snapshot.verifier
    ? refuse("verifier_not_found", `verifier_id: there is no verifier ${opening.verifierId}.`)
    : null;
}

/** The refusal by the organisation's kill switch, which stops new warrants in both modes. */
const refuseStopped = ({ killSwitch }: Organisation): Refusal | null =>
  killSwitch
    ? refuse("kill_switch_active", "The organisation's kill switch is on; what is open goes on.")
    : null;

/** Refuses a key that names another agent, and agents that may not spend. */
function refuseAgent(
  { agent: named, callerAgent }: Snapshot<OpeningNeeds & CredentialNeeds>,
  caller: Caller,
  opening: Opening,
): Refusal | null {
  if (caller.kind === "key" && opening.agentId !== null && opening.agentId !== caller.agentId) {
    return refuse("agent_key_mismatch", "agent_id: an API key opens warrants for its own agent only.");
  }
  if (opening.agentId === null && callerAgent?.mustBeNamed) {
    return refuse("agent_id_required", `agent_id: this key's agent must be named; send ${callerAgent.id}.`);
  }
  const idle = [callerAgent, named].find((agent) => agent && agent.status !== "active");
  return idle
    ? refuse("agent_not_active", `The agent ${idle.id} is ${idle.status}; it cannot open warrants.`)
    : null;
}
