import { CLAUSES_MAX, type Clause, fitsSpec, parseClause } from "../../core/clauses/registry.ts";
import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import { BUILT_IN_RULES, BUILT_IN_RULES_HASH, type Policy, refuseAboveMaximum } from "../../core/policy.ts";
import type { Balance } from "../../core/postings.ts";
import { actorOf, type Caller } from "../../core/roles.ts";
import { chargeSession, type SpendSession } from "../../core/session.ts";
import type { SavedVerifier } from "../../core/verifier.ts";
import { heldWarrant, openingOf, type Warrant } from "../../core/warrant.ts";
import type { Snapshot } from "../../store/needs.ts";
import type { CredentialNeeds } from "../caller-now.ts";
import { changeOf, type Moved } from "../transition.ts";
import { OF_AGENT, type Opening, type OpeningNeeds } from "./opening.ts";

/** The hold of an amount, for `open` and for a purchase alike. */

/** Ids of a new warrant. They are drawn first, since deciding is pure. */
type Ids = { readonly warrantId: string; readonly eventId: string };

const HOLDING_RULES = {
  agentPolicy: OF_AGENT,
  callerAgentPolicy: { from: "callerAgent" },
  organisationPolicy: true,
  newestOfPolicy: { from: "policy" },
  verifierSchema: { from: "verifier" },
  webhooks: true,
} as const;

/** The needs of a hold, besides those of the opening. */
export const holdingNeeds = ({ asset }: Opening) => ({ ...HOLDING_RULES, balance: asset });

type HoldingNeeds = ReturnType<typeof holdingNeeds>;

/**
 * (none) → held, or the refusal by session, policy, passkey threshold or balance, in this order.
 *
 * @param refuseAbove the refusal by the passkey threshold, if any
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
  { organisationId, mode }: Caller,
  { clauses: _, ...opening }: Opening,
  held: {
    readonly clauses: readonly Clause[];
    readonly session: SpendSession | null;
    readonly policy: Policy | null;
  },
  id: string,
  openedAt: number,
): Warrant {
  return heldWarrant({
    ...opening,
    id,
    organisationId,
    mode,
    spec: { clauses: held.clauses },
    sessionId: held.session?.id ?? null,
    policyId: held.policy?.id ?? null,
    policyVersion: held.policy?.version ?? null,
    rulesHash: held.policy?.rulesHash ?? BUILT_IN_RULES_HASH,
    openedAt,
  });
}

/**
 * A key may name only the newest version of a policy. Where its agent has policies of its own, it may name
 * only one of these.
 */
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

/** The clauses of the spec to be hashed, with the clause of a saved verifier at the end. */
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
