import { CLAUSES_MAX, type Clause, fitsSpec, parseClause } from "../../core/clauses/registry.ts";
import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import { BUILT_IN_RULES, BUILT_IN_RULES_HASH, type Policy, refuseAboveMaximum } from "../../core/policy.ts";
import type { Balance } from "../../core/postings.ts";
import { actorOf, type Caller } from "../../core/roles.ts";
import { chargeSession, type SpendSession } from "../../core/session.ts";
import type { SavedVerifier } from "../../core/verifier.ts";
import { heldWarrant, openingOf, type Warrant } from "../../core/warrant.ts";
import type { Snapshot } from "../../store/needs.ts";
import { builtInsBesides, newSchemaIds, type SchemaIds } from "../built-in-schemas.ts";
import type { CredentialNeeds } from "../caller-now.ts";
import type { Context } from "../context.ts";
import { changeOf, type Moved } from "../transition.ts";
import { OF_AGENT, type Opening, type OpeningNeeds } from "./opening.ts";

/** The hold of an amount, for `open` and for a purchase alike. */

/** Ids of a new warrant. They are drawn first, since deciding is pure. */
export type Ids = { readonly warrantId: string; readonly eventId: string; readonly schemaIds: SchemaIds };

/** Draws the ids that holding an opening may need. */
export const newHoldIds = (ctx: Pick<Context, "newId">, clauses: readonly Clause[]): Ids => ({
  warrantId: ctx.newId("warrant"),
  eventId: ctx.newId("event"),
  schemaIds: newSchemaIds(ctx, clauses),
});

const HOLDING_RULES = {
  agentPolicy: OF_AGENT,
  callerAgentPolicy: { from: "callerAgent" },
  organisationPolicy: true,
  newestOfPolicy: { from: "policy" },
  verifierSchema: { from: "verifier" },
  webhooks: true,
} as const;

/** The needs of a hold, besides those of the opening. */
export const holdingNeeds = ({ amount, asset }: Opening) => ({
  ...HOLDING_RULES,
  balance: asset,
  sessionWindows: windowsFor(amount),
});

/** The need of a charge to the session, besides the session itself. */
export const windowsFor = (amount: bigint) => ({ from: "agentSession", amount }) as const;

type HoldingNeeds = ReturnType<typeof holdingNeeds>;

/** The spec, session and policy under which an opening is held. */
type HoldTerms = {
  readonly clauses: readonly Clause[];
  /** The agent's session with the amount charged to it; null where there is none. */
  readonly session: SpendSession | null;
  readonly policy: Policy | null;
};

/**
 * Finds the spec, session and policy under which the opening is held, or refuses by the first of them that
 * fails. The verb then applies its own rule for the passkey threshold, and calls `decideHold`.
 */
export function decideTerms(
  snapshot: Snapshot<OpeningNeeds & HoldingNeeds & CredentialNeeds>,
  caller: Caller,
  opening: Opening,
  now: number,
): HoldTerms | Refusal {
  const clauses = specClauses(snapshot.verifier, opening.clauses);
  if (isRefusal(clauses)) return clauses;
  const { agentSession, sessionWindows } = snapshot;
  const session = agentSession && chargeSession(agentSession, opening, sessionWindows, now);
  if (isRefusal(session)) return session;
  const policy = snapshot.policy ?? snapshot.agentPolicy ?? snapshot.organisationPolicy;
  const refused =
    refusePolicy(snapshot, caller) ??
    refuseAboveMaximum(policy?.rules ?? BUILT_IN_RULES, opening.amount, opening.asset);
  return refused ?? { clauses, session, policy };
}

/** (none) → held under these terms; refused where the balance is too low. */
export function decideHold(
  snapshot: Snapshot<OpeningNeeds & HoldingNeeds & CredentialNeeds>,
  caller: Caller,
  opening: Opening,
  terms: HoldTerms,
  ids: Ids,
  now: number,
): Moved | Refusal {
  const short = refuseShortBalance(snapshot.balance, opening);
  if (short) return short;
  const warrant = newWarrant(caller, opening, terms, ids.warrantId, snapshot.recordedAt);
  const { verifierSchema, recordedAt: createdAt } = snapshot;
  const { organisationId } = caller;
  const builtIns = builtInsBesides(snapshot.schemas, ids.schemaIds, { organisationId, createdAt });
  const schemas = [...snapshot.schemas, ...builtIns, ...(verifierSchema ? [verifierSchema] : [])];
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
    [
      ...(terms.session
        ? [{ kind: "spendSession", before: snapshot.agentSession, row: terms.session } as const]
        : []),
      ...builtIns.map((row) => ({ kind: "schema", row }) as const),
    ],
  );
}

function newWarrant(
  caller: Caller,
  { clauses: _, sourceUrl: __, ...opening }: Opening,
  { clauses, session, policy }: HoldTerms,
  id: string,
  openedAt: number,
): Warrant {
  const { organisationId, mode } = caller;
  return heldWarrant({
    ...opening,
    id,
    organisationId,
    mode,
    openedBy:
      caller.kind === "key" ? { kind: "agent", id: caller.agentId } : { kind: "user", id: caller.userId },
    spec: { clauses },
    sessionId: session?.id ?? null,
    policyId: policy?.id ?? null,
    policyVersion: policy?.version ?? null,
    rulesHash: policy?.rulesHash ?? BUILT_IN_RULES_HASH,
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
