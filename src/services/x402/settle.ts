import type { Verdict } from "../../core/agent.ts";
import type { Evaluation, Evidence } from "../../core/clauses/evidence.ts";
import type { ReasonCode } from "../../core/clauses/reason-codes.ts";
import { isRefusal, type Refusal } from "../../core/errors.ts";
import { type Actor, SYSTEM } from "../../core/roles.ts";
import type { Warrant } from "../../core/warrant.ts";
import { decideSettlement, type Purchase } from "../../core/x402/purchase.ts";
import type { Decision, Snapshot } from "../../store/store.ts";
import type { Context, FetchedEvidence } from "../context.ts";
import type { Answer } from "../intent.ts";
import { TOO_MANY_CHECKS } from "../warrants/check-limiter.ts";
import { type Moved, moveWarrant } from "../warrants/transition.ts";
import { checkOf, type Decided, decideWarrant, evaluateEvidence, moveByCheck } from "../warrants/verify.ts";
import { type Result, recordPayment } from "./answer.ts";
import { type Money, nextCheckAt, UNPAID } from "./money.ts";

/** Ids that an ending may need; drawn before it is decided. */
export const newIds = (ctx: Context) => ({
  checkId: ctx.newId("check"),
  escalationId: ctx.newId("escalation"),
  eventId: ctx.newId("event"),
});
type Ids = ReturnType<typeof newIds>;

/**
 * Ends a purchase whose paid request is over, or was cut off: every clause is evaluated, the policy decides, and what is known
 * of the money stands above both (decisions.md, x402). Where nothing came and nothing was paid the hold returns, unchecked.
 *
 * @param signed the purchase as it is kept, `signed` or `answered`
 */
export async function settlePurchase(
  ctx: Context,
  signed: Purchase,
  evidence: Evidence,
  money: Money,
): Promise<Answer | Refusal> {
  if (!evidence.reached && money.known === "unpaid")
    return refundPurchase(ctx, signed, { money, reasonCode: "source_unreachable", verdict: "failed" });
  const begun = await beginSettlement(ctx, signed);
  if (isRefusal(begun)) return begun;
  let evaluation: Evaluation;
  try {
    // As of the answer: what was fresh then is not stale because we were cut off.
    evaluation = await evaluateEvidence(ctx, begun, evidence, signed.answeredAt ?? ctx.now());
  } catch (error) {
    // The evaluator was busy for too long. The purchase goes on as soon as it is not, and the key stays in flight.
    if (isRefusal(error)) return TOO_MANY_CHECKS;
    throw error;
  }
  return completeSettlement(ctx, begun, signed, { evidence, evaluation, money });
}

/** held → verifying, in the name of who opened it; or the warrant as it is, where that was done before a cut. */
function beginSettlement(ctx: Context, signed: Purchase): Promise<Warrant | Refusal> {
  const eventId = ctx.newId("event");
  const now = ctx.now();
  const actor = openerOf(ctx, signed);
  return ctx.store.execute<Warrant>({
    scope: signed,
    needs: { purchaseId: signed.id },
    decide: (snapshot): Decision<Warrant> => {
      const { purchase, warrant } = snapshot;
      if (!warrant || purchase?.phase !== signed.phase)
        throw new Error(`the purchase ${signed.id} has moved on`);
      if (warrant.state === "verifying") return { answer: warrant };
      const moved = moveWarrant(
        snapshot,
        { to: "verifying", by: "caller" },
        { actor, eventId, now, purchase },
      );
      return isRefusal(moved) ? { answer: moved } : { answer: moved.warrant, change: moved.change };
    },
  });
}

function openerOf(ctx: Context, { warrantId }: Purchase): Actor {
  const [opening] = warrantId === null ? [] : ctx.store.reader.trace.of(warrantId);
  return opening?.actor ?? SYSTEM;
}

/** verifying → what was decided, with the check, the money, the purchase's end and the answer in one commit. */
function completeSettlement(
  ctx: Context,
  begun: Warrant,
  signed: Purchase,
  found: { readonly evidence: Evidence; readonly evaluation: Evaluation; readonly money: Money },
): Promise<Answer | Refusal> {
  const ids = newIds(ctx);
  const now = ctx.now();
  const { evidence, evaluation, money } = found;
  const fetched = fetchedOf(begun, signed, evidence);
  return ctx.store.execute<Answer>({
    scope: signed,
    needs: { purchaseId: signed.id, idempotencyKey: signed.idempotencyKey, organisation: true },
    decide: (snapshot): Decision<Answer> => {
      const { warrant, purchase } = snapshot;
      if (warrant?.version !== begun.version || purchase?.phase !== signed.phase)
        throw new Error(`the purchase ${signed.id} has moved on`);
      const decided = decideBought(snapshot, warrant, purchase, found);
      const check = checkOf(warrant.id, ids.checkId, purchase.url, fetched, evaluation, decided);
      const ended = endedPurchase(purchase, money, now);
      // Only what was cut off comes here without having kept an answer.
      const isCutOff = purchase.phase !== "answered";
      const moved = moveByCheck(snapshot, check, decided.decision, {
        ...ids,
        now,
        purchase: ended,
        isCutOff,
      });
      if (isRefusal(moved)) return { answer: moved };
      return endWith(snapshot, ended, moved, { passed: check.passed, reasonCodes: decided.reasonCodes }, now);
    },
  });
}

/** What the policy makes of it, and what the money allows. */
function decideBought(
  snapshot: Snapshot,
  warrant: Warrant,
  { quote }: Purchase,
  { evidence, evaluation, money }: { evidence: Evidence; evaluation: Evaluation; money: Money },
): Decided {
  if (!quote) throw new Error("nothing is settled without a quote");
  const { decision, reasonCodes } = decideWarrant(snapshot, warrant, evaluation);
  const settlement = decideSettlement(quote.pays.kind, money.known, evidence.reached ? decision : null);
  const code = settlement.reasonCode;
  return {
    decision: settlement.decision,
    reasonCodes: code === null || reasonCodes.includes(code) ? reasonCodes : [...reasonCodes, code],
  };
}

/** The paid request as a check records a fetch. It lasted from the hold to the answer. */
const fetchedOf = (begun: Warrant, signed: Purchase, evidence: Evidence): FetchedEvidence => ({
  evidence,
  status: signed.responseStatus,
  bytes: evidence.reached ? evidence.body.length : 0,
  durationMs: Math.max(0, (signed.answeredAt ?? begun.openedAt) - begun.openedAt),
});

type Refund = {
  readonly reasonCode: ReasonCode;
  readonly money?: Money;
  /** `neither` where it was not the seller's failure. */
  readonly verdict?: Verdict;
};

/** Ends a purchase that nobody can have been paid for: the hold returns. */
export function refundPurchase(ctx: Context, unpaid: Purchase, refund: Refund): Promise<Answer | Refusal> {
  const ids = newIds(ctx);
  const now = ctx.now();
  return ctx.store.execute<Answer>({
    scope: unpaid,
    needs: { purchaseId: unpaid.id, idempotencyKey: unpaid.idempotencyKey },
    decide: (snapshot) => decideRefund(snapshot, unpaid, { ...refund, ids, now }),
  });
}

/** held (or, after a cut, verifying) → refunded by `system`, with the purchase's end and the answer in one commit. */
export function decideRefund(
  snapshot: Snapshot,
  unpaid: Purchase,
  {
    ids,
    now,
    reasonCode,
    money = UNPAID,
    verdict = "neither",
  }: Refund & { readonly ids: Ids; readonly now: number },
): Decision<Answer> {
  if (snapshot.purchase?.phase !== unpaid.phase) throw new Error(`the purchase ${unpaid.id} has moved on`);
  const ended = endedPurchase(snapshot.purchase, money, now);
  const moved = moveWarrant(
    snapshot,
    { to: "refunded", by: "system" },
    { actor: SYSTEM, eventId: ids.eventId, now, verdict, purchase: ended },
  );
  if (isRefusal(moved)) return { answer: moved };
  return endWith(snapshot, ended, moved, { passed: false, reasonCodes: [reasonCode] }, now);
}

const endedPurchase = (purchase: Purchase, money: Money, now: number): Purchase => ({
  ...purchase,
  ...money,
  phase: "ended",
  endedAt: now,
  nextCheckAt: money.known === "unknown" ? nextCheckAt(purchase, now) : null,
});

function endWith(
  { idempotency: bound }: Snapshot,
  ended: Purchase,
  { warrant, change }: Moved,
  result: Result,
  now: number,
): Decision<Answer> {
  const { answer, idempotency } = recordPayment(bound, ended, warrant, result, now);
  return { answer, change: { ...change, idempotency } };
}
