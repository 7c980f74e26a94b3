import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import type { Wire } from "../../core/form.ts";
import { parseAmount } from "../../core/money.ts";
import { refuseOpenAbove } from "../../core/passkey.ts";
import { ACCESS, type Caller, refuseAccess } from "../../core/roles.ts";
import { DAY_MS, parseTime } from "../../core/time.ts";
import type { openBody } from "../../resources/warrant.ts";
import type { Context } from "../context.ts";
import { type Answer, executeKeyed, finish, type Idempotency } from "../idempotency.ts";
import { decideHold, decideTerms, holdingNeeds, newHoldIds } from "./hold.ts";
import { type Opening, openingNeeds, parseSpec, refuseOpening, refuseUnknownSchema } from "./opening.ts";

const DEADLINE_AHEAD_MAX_MS = 5 * 365.25 * DAY_MS;

/** The body of `POST /v1/warrants`. */
export type OpenInput = Wire<typeof openBody>;

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
    sourceUrl: null,
  };
}

/**
 * Opens a warrant: holds its amount against the promise. Answers 201 with the warrant. The checks have a
 * fixed order, and the first one that fails gives the refusal; then nothing moves.
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
  const ids = newHoldIds(ctx, opening.clauses);
  return executeKeyed(ctx.store, {
    caller,
    access: ACCESS.openWarrant,
    idempotency,
    needs: { ...openingNeeds(opening), ...holdingNeeds(opening), hasPasskey: true },
    refuseBody: (snapshot, now) =>
      refuseDeadline(opening.deadline, now) ?? refuseUnknownSchema(snapshot, opening.clauses),
    decide(snapshot, { now, caller: present, key }) {
      const terms = refuseOpening(snapshot, present, opening) ?? decideTerms(snapshot, present, opening, now);
      if (isRefusal(terms)) return { answer: terms };
      const held =
        refuseOpenAbove(snapshot.organisation.passkeyThreshold, opening, snapshot.hasPasskey) ??
        decideHold(snapshot, present, opening, terms, ids, now);
      return isRefusal(held)
        ? { answer: held }
        : finish(key, 201, { warrant: held.warrant }, held.change.put);
    },
  });
}

/**
 * A check of the body that comes after replays: an open can be replayed even when its deadline has passed
 * since.
 */
function refuseDeadline(deadline: number, now: number): Refusal | null {
  if (deadline <= now) return refuse("deadline_in_past", "deadline: must be in the future");
  return deadline - now > DEADLINE_AHEAD_MAX_MS
    ? refuseField("deadline", "must be at most 5 years ahead")
    : null;
}
