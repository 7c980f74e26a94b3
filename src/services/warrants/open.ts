import { canonicalJson, sha256 } from "../../core/canonical.ts";
import {
  CLAUSES_MAX,
  type Clause,
  fitsSpec,
  parseClause,
  parseClauses,
  refuseJsonPath,
  schemaNamesOf,
} from "../../core/clauses/registry.ts";
import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import { parseAmount } from "../../core/money.ts";
import type { NamedSchema } from "../../core/named-schema.ts";
import type { Organisation } from "../../core/organisation.ts";
import { refuseOpenAbove } from "../../core/passkey.ts";
import { BUILT_IN_RULES, BUILT_IN_RULES_HASH, type Policy, refuseAboveMaximum } from "../../core/policy.ts";
import type { Balance } from "../../core/postings.ts";
import { ACCESS, actorOf, type Caller, refuseAccess } from "../../core/roles.ts";
import { chargeSession, type SpendSession } from "../../core/session.ts";
import { DAY_MS, parseTime } from "../../core/time.ts";
import type { SavedVerifier } from "../../core/verifier.ts";
import { openingOf, type Warrant } from "../../core/warrant.ts";
import type { From, Snapshot } from "../../store/needs.ts";
import type { CredentialNeeds } from "../caller-now.ts";
import type { Context } from "../context.ts";
import { type Answer, executeKeyed, finish, type Idempotency } from "../idempotency.ts";
import { refuseUnacknowledged } from "../instance.ts";
import { warrantResource } from "../resources.ts";
import { changeOf, type Moved } from "./transition.ts";

const DEADLINE_AHEAD_MAX_MS = 5 * 365.25 * DAY_MS;

/** The body of `POST /v1/warrants` (interface.md, Warrant endpoints). */
export type OpenInput = {
  readonly amount: string;
  readonly asset?: string;
  readonly payee: string;
  readonly deadline: string;
  readonly spec: { readonly clauses: readonly unknown[] };
  readonly agent_id?: string;
  readonly verifier_id?: string;
  readonly policy_id?: string;
};

/** An opening whose every field has been read; times in epoch milliseconds. */
export type Opening = {
  readonly amount: bigint;
  readonly asset: string;
  readonly payee: string;
  readonly deadline: number;
  readonly clauses: readonly Clause[];
  readonly agentId: string | null;
  readonly verifierId: string | null;
  readonly policyId: string | null;
};

function parseOpening(input: OpenInput): Opening | Refusal {
  const amount = parseAmount(input.amount);
  if (amount === null)
    return refuseField("amount", "must be a string of digits, at most 9223372036854775807");
  if (amount === 0n) return refuseField("amount", "must be greater than zero");
  const deadline = parseTime(input.deadline);
  if (deadline === null) {
    return refuseField("deadline", "must be an ISO 8601 time with a zone, such as 2030-01-31T12:00:00Z");
  }
  const clauses = parseSpec(input.spec);
  if (isRefusal(clauses)) return clauses;
  return {
    amount,
    asset: input.asset ?? "USDC",
    payee: input.payee,
    deadline,
    clauses,
    agentId: input.agent_id ?? null,
    verifierId: input.verifier_id ?? null,
    policyId: input.policy_id ?? null,
  };
}

/** The clauses of a spec, or what is wrong with the first that is none. */
export function parseSpec(spec: OpenInput["spec"]): readonly Clause[] | Refusal {
  const clauses = parseClauses(spec.clauses, "spec.clauses");
  if (isRefusal(clauses)) return clauses;
  for (const [index, clause] of clauses.entries()) {
    const unsupported = refuseJsonPath(clause, `spec.clauses.${index}`);
    if (unsupported) return unsupported;
  }
  return clauses;
}

/**
 * Opens a warrant: holds its amount against the promise. Answers 201 with the warrant, or refuses with the first of the
 * checks that fails, in their fixed order; nothing moves then.
 */
export async function openWarrant(
  ctx: Context,
  caller: Caller,
  input: OpenInput,
  idempotency: Idempotency,
): Promise<Answer | Refusal> {
  const refused = refuseAccess(caller, ACCESS.openWarrant);
  if (refused) return refused;
  const opening = parseOpening(input);
  if (isRefusal(opening)) return opening;
  const ids: Ids = { warrantId: ctx.newId("warrant"), eventId: ctx.newId("event") };
  return executeKeyed(ctx.store, {
    caller,
    access: ACCESS.openWarrant,
    idempotency,
    needs: { ...openingNeeds(opening), ...holdingNeeds(opening), hasPasskey: true },
    refuseBody: (snapshot, now) =>
      refuseDeadline(opening.deadline, now) ?? refuseUnknownSchema(snapshot, opening.clauses),
    decide(snapshot, { now, caller: present, key }) {
      const held =
        refuseOpening(snapshot, present, opening) ??
        decideHold(snapshot, present, opening, ids, now, (threshold) =>
          refuseOpenAbove(threshold, opening, snapshot.hasPasskey),
        );
      return isRefusal(held)
        ? { answer: held }
        : finish(key, 201, warrantResource(held.warrant), held.change);
    },
  });
}

type Ids = { readonly warrantId: string; readonly eventId: string };

/** What an opening names, and what is asked of it before its amount is known. */
export const openingNeeds = ({ agentId, policyId, verifierId, clauses }: Opening) => ({
  agent: agentId,
  agentSession: OF_AGENT,
  policy: policyId,
  verifier: verifierId,
  schemas: schemaNamesOf(clauses),
});
export type OpeningNeeds = ReturnType<typeof openingNeeds>;

const OF_AGENT: From<"agent"> = { from: "agent" };

const HOLDING_RULES = {
  agentPolicy: OF_AGENT,
  callerAgentPolicy: { from: "callerAgent" },
  organisationPolicy: true,
  newestOfPolicy: { from: "policy" },
  verifierSchema: { from: "verifier" },
  webhooks: true,
} as const;

/** What a hold asks besides the opening. */
export const holdingNeeds = ({ asset }: Opening) => ({ ...HOLDING_RULES, balance: asset });
type HoldingNeeds = ReturnType<typeof holdingNeeds>;

/** Why nothing opens so, whatever it costs; null where it may. */
export const refuseOpening = (
  snapshot: Snapshot<OpeningNeeds & CredentialNeeds>,
  caller: Caller,
  opening: Opening,
): Refusal | null =>
  refuseUnknownResource(snapshot, opening) ??
  refuseUnacknowledged(snapshot.instance, caller.mode) ??
  refuseStopped(snapshot.organisation) ??
  refuseAgent(snapshot, caller, opening);

/**
 * (none) → held for this amount, or why not: session, policy, passkey and balance, in this order.
 *
 * @param refuseAbove what the passkey threshold says of the amount
 */
export function decideHold(
  snapshot: Snapshot<OpeningNeeds & HoldingNeeds & CredentialNeeds>,
  caller: Caller,
  opening: Opening,
  ids: Ids,
  now: number,
  refuseAbove: (threshold: bigint | null) => Refusal | null,
): Moved | Refusal {
  const clauses = specClauses(snapshot.verifier, opening.clauses);
  if (isRefusal(clauses)) return clauses;
  const { agentSession } = snapshot;
  const session = agentSession && chargeSession(agentSession, opening.amount, opening.asset, now);
  if (isRefusal(session)) return session;
  const policy = snapshot.policy ?? snapshot.agentPolicy ?? snapshot.organisationPolicy;
  const last =
    refusePolicy(snapshot, caller) ??
    refuseAboveMaximum(policy?.rules ?? BUILT_IN_RULES, opening.amount, opening.asset) ??
    refuseAbove(snapshot.organisation.passkeyThreshold) ??
    refuseShortBalance(snapshot.balance, opening);
  if (last) return last;

  const warrant = newWarrant(
    caller,
    opening,
    { clauses, session, policy },
    ids.warrantId,
    snapshot.recordedAt,
  );
  const { verifierSchema } = snapshot;
  const schemas = verifierSchema ? [...snapshot.schemas, verifierSchema] : snapshot.schemas;
  return changeOf(
    openingOf(warrant),
    null,
    snapshot,
    now,
    {
      actor: actorOf(caller),
      eventId: ids.eventId,
      schemaHashes: Object.fromEntries(schemas.map((schema) => [schema.name, schema.schemaHash])),
    },
    session ? [{ kind: "spendSession", before: agentSession, row: session }] : [],
  );
}

function newWarrant(
  caller: Caller,
  opening: Opening,
  terms: {
    readonly clauses: readonly Clause[];
    readonly session: SpendSession | null;
    readonly policy: Policy | null;
  },
  id: string,
  openedAt: number,
): Warrant {
  const spec = { clauses: terms.clauses };
  return {
    id,
    organisationId: caller.organisationId,
    mode: caller.mode,
    state: "held",
    version: 1,
    amount: opening.amount,
    asset: opening.asset,
    releasedBps: null,
    payee: opening.payee,
    spec,
    specHash: sha256(canonicalJson(spec)),
    agentId: opening.agentId,
    sessionId: terms.session?.id ?? null,
    verifierId: opening.verifierId,
    policyId: terms.policy?.id ?? null,
    policyVersion: terms.policy?.version ?? null,
    rulesHash: terms.policy?.rulesHash ?? BUILT_IN_RULES_HASH,
    traceHead: null,
    deadline: opening.deadline,
    openedAt,
    verifyingSince: null,
    settledAt: null,
  };
}

/** Part of the body's checks, but made here: a replay of an open whose deadline has passed is still a replay. */
function refuseDeadline(deadline: number, now: number): Refusal | null {
  if (deadline <= now) return refuse("deadline_in_past", "deadline: must be in the future");
  return deadline - now > DEADLINE_AHEAD_MAX_MS
    ? refuseField("deadline", "must be at most 5 years ahead")
    : null;
}

export function refuseUnknownSchema(
  { schemas }: { readonly schemas: readonly NamedSchema[] },
  clauses: readonly Clause[],
): Refusal | null {
  const known = new Set(schemas.map((schema) => schema.name));
  for (const [index, clause] of clauses.entries()) {
    if (clause.kind === "json.schema" && !known.has(clause.schema)) {
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

/** The organisation's kill switch: nothing new opens, in either mode (interface.md, Authentication, rule 7). */
const refuseStopped = ({ killSwitch }: Organisation): Refusal | null =>
  killSwitch
    ? refuse("kill_switch_active", "The organisation's kill switch is on; what is open goes on.")
    : null;

/** Authority of a key over agents, and whether the agents may spend (decisions.md, Warrants). */
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

/** A key names the newest version of a name only, and where its agent has a policy of its own, that agent's only. */
function refusePolicy(
  {
    policy,
    newestOfPolicy: newest,
    callerAgentPolicy,
  }: Snapshot<OpeningNeeds & HoldingNeeds & CredentialNeeds>,
  caller: Caller,
): Refusal | null {
  if (!policy || caller.kind !== "key") return null;
  if (newest && newest.id !== policy.id) {
    return refuse(
      "policy_not_allowed",
      `policy_id: version ${policy.version} of ${policy.name} is not the newest; a key may name ${newest.id}.`,
    );
  }
  const owner = callerAgentPolicy ? caller.agentId : null;
  return policy.agentId === owner
    ? null
    : refuse(
        "policy_not_allowed",
        owner === null
          ? "policy_id: this policy belongs to another agent."
          : "policy_id: this key's agent has a policy of its own, and may name no other.",
      );
}

/** The clauses as they are hashed: a saved verifier adds its own. */
function specClauses(
  verifier: SavedVerifier | null,
  clauses: readonly Clause[],
): readonly Clause[] | Refusal {
  if (!verifier) return clauses;
  const saved = parseClause({ kind: verifier.type, ...verifier.config }, "verifier_id");
  if (isRefusal(saved)) return saved;
  const all = [...clauses, saved];
  if (all.length > CLAUSES_MAX || !fitsSpec(all)) {
    return refuseField(
      "verifier_id",
      `with the saved clause the spec has more than ${CLAUSES_MAX} clauses or 64 kB`,
    );
  }
  return all;
}

function refuseShortBalance(balance: Balance | null, { amount, asset }: Opening): Refusal | null {
  const available = balance?.available ?? 0n;
  return available >= amount
    ? null
    : refuse("insufficient_funds", `${available} ${asset} is available, and ${amount} is needed.`);
}
