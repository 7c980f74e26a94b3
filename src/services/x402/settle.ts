import type { Verdict } from "../../core/agent.ts";
import { type SeenAnswer, UNSEEN_ANSWER } from "../../core/capsule.ts";
import type { Evidence } from "../../core/clauses/evidence.ts";
import type { ReasonCode } from "../../core/clauses/reason-codes.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import { type Actor, SYSTEM } from "../../core/roles.ts";
import type { Warrant } from "../../core/warrant.ts";
import { decideSettlement, type Purchase } from "../../core/x402/purchase.ts";
import type { Snapshot } from "../../store/needs.ts";
import type { Decision } from "../../store/store.ts";
import { boughtBody, keepCapsule } from "../checks/capsule.ts";
import { type Evaluated, evaluateEvidence } from "../checks/evaluate.ts";
import {
  checkOf,
  DECIDING,
  decideCheck,
  moveOfCheck,
  newOutcomeIds,
  type Outcome,
} from "../checks/outcome.ts";
import { signatureOf } from "../checks/signer.ts";
import type { Context, FetchedEvidence } from "../context.ts";
import type { Answer } from "../idempotency.ts";
import { buyingNeeds, type Moved, moveBought } from "../transition.ts";
import { ENDED_MEANWHILE, finishPurchase, type Result } from "./answer.ts";
import { type Money, nextCheckAt, UNPAID } from "./money.ts";

/** The needs of a purchase's end: the warrant's move, and the key that gets the answer. */
export const endingNeeds = (purchaseId: string) => ({ ...buyingNeeds(purchaseId), heldKey: purchaseId });
type Ending = Snapshot<ReturnType<typeof endingNeeds>>;

/** The results of a paid request. */
type Found = Evaluated & {
  readonly evidence: Evidence;
  readonly money: Money;
  readonly answer: SeenAnswer;
};

/** The key stays in flight, and recovery ends the purchase once an evaluator is free. */
const EVALUATORS_BUSY: Refusal = refuse(
  "rate_limit_exceeded",
  "Too many documents are being evaluated. The purchase is under way, and ends without another request. Retry shortly with the same Idempotency-Key to see how.",
);

/**
 * Ends a purchase whose paid request is over or was cut off. All clauses are evaluated and the policy
 * decides, as far as the state of the payment allows. Where no answer came and nothing was paid, the hold
 * returns without a check.
 *
 * @param signed the purchase as it is stored, in the phase `signed` or `answered`
 * @param answer what was seen of the answer besides the evidence; recovery does not know it
 */
export async function settlePurchase(
  ctx: Context,
  signed: Purchase,
  evidence: Evidence,
  money: Money,
  answer: SeenAnswer = UNSEEN_ANSWER,
): Promise<Answer | Refusal> {
  if (!evidence.reached && money.known === "unpaid")
    return refundPurchase(ctx, signed, { money, reasonCode: "source_unreachable", verdict: "failed" });
  const begun = await beginSettlement(ctx, signed);
  if (isRefusal(begun)) return begun;
  let evaluated: Evaluated;
  try {
    // Evidence is judged by the time of the answer: a later recovery must not make it stale.
    evaluated = await evaluateEvidence(ctx, begun, evidence, signed.answeredAt ?? ctx.now());
  } catch (error) {
    if (isRefusal(error)) return EVALUATORS_BUSY;
    throw error;
  }
  return completeSettlement(ctx, begun, signed, { evidence, ...evaluated, money, answer });
}

/**
 * held → verifying, by the actor who opened the warrant. A warrant that is verifying already, from before an
 * interruption, stays as it is.
 */
async function beginSettlement(ctx: Context, signed: Purchase): Promise<Warrant | Refusal> {
  const eventId = ctx.newId("event");
  const actor = await openerOf(ctx, signed);
  return ctx.store.execute({
    scope: signed,
    needs: buyingNeeds(signed.id),
    decide(snapshot, now): Decision<Warrant> {
      const { purchase, warrant } = snapshot;
      if (purchase?.phase !== signed.phase) return { answer: ENDED_MEANWHILE };
      if (warrant?.state === "verifying") return { answer: warrant };
      const moved = moveBought(
        snapshot,
        purchase,
        { to: "verifying", by: "caller" },
        { actor, eventId, now },
      );
      return isRefusal(moved) ? { answer: moved } : { answer: moved.warrant, change: moved.change };
    },
  });
}

async function openerOf(ctx: Context, { warrantId }: Purchase): Promise<Actor> {
  if (warrantId === null) return SYSTEM;
  const opening = await ctx.store.read((reader) => reader.trace.entry(warrantId, 0));
  return opening?.actor ?? SYSTEM;
}

/** verifying → what was decided. One commit has the check, the money, the purchase's end and the answer. */
async function completeSettlement(
  ctx: Context,
  begun: Warrant,
  signed: Purchase,
  found: Found,
): Promise<Answer | Refusal> {
  const ids = newOutcomeIds(ctx);
  const { evidence, evaluation, schemas, money, answer } = found;
  const { method } = signed;
  // A seller is paid for one answer, and asked for nothing more.
  const asked = { party: signed, method, now: evaluation.evaluatedAt, fetchBeside: null };
  const signature = await signatureOf(ctx, asked, found);
  const of = { id: ids.checkId, warrantId: begun.id, sourceUrl: signed.url, evaluation, signature };
  const seen = { ...of, method, evidence, answer, schemas };
  const capsuleHash = await keepCapsule(ctx, begun, seen, boughtBody(evidence));
  const checked = { ...of, fetched: fetchedOf(begun, signed, found), capsuleHash };
  return ctx.store.execute({
    scope: signed,
    needs: { ...endingNeeds(signed.id), ...DECIDING },
    decide(snapshot, now): Decision<Answer> {
      const { warrant, purchase } = snapshot;
      if (warrant?.version !== begun.version || purchase?.phase !== signed.phase)
        return { answer: ENDED_MEANWHILE };
      const outcome = whatMoneyAllows(purchase, decideCheck(snapshot, warrant, evaluation), found);
      const check = checkOf(checked, outcome);
      const ended = endedPurchase(purchase, money, now);
      // A purchase without a stored answer was cut off.
      const countsForNobody = purchase.phase !== "answered" || outcome.reasonCodes.includes("payment_unused");
      const { move, details } = moveOfCheck(warrant, check, outcome.decision, ids, now, countsForNobody);
      const moved = moveBought(snapshot, ended, move, details);
      if (isRefusal(moved)) return { answer: moved };
      return endWith(snapshot, ended, moved, { passed: check.passed, reasonCodes: outcome.reasonCodes });
    },
  });
}

/** The policy's decision on the answer, changed where the state of the payment does not allow it. */
function whatMoneyAllows(
  { quote }: Purchase,
  { decision, reasonCodes }: Outcome,
  { evidence, evaluation, money }: Found,
): Outcome {
  if (!quote) throw new Error("nothing is settled without a quote");
  const settlement = decideSettlement(
    quote.pays.kind,
    money.known,
    evidence.reached ? decision : null,
    evaluation.passed,
  );
  const code = settlement.reasonCode;
  return {
    decision: settlement.decision,
    reasonCodes: code === null || reasonCodes.includes(code) ? reasonCodes : [...reasonCodes, code],
  };
}

/**
 * The paid request in the form in which a check records a fetch. Its duration is from the hold to the answer.
 */
const fetchedOf = (begun: Warrant, signed: Purchase, { evidence, answer }: Found): FetchedEvidence => ({
  evidence,
  answer,
  status: signed.responseStatus,
  bytes: evidence.reached ? evidence.body.length : 0,
  durationMs: Math.max(0, (signed.answeredAt ?? begun.openedAt) - begun.openedAt),
});

type Refund = {
  readonly reasonCode: ReasonCode;
  readonly money?: Money;
  /** By default `neither`: the seller has not failed. */
  readonly verdict?: Verdict;
};

/** Ends a purchase that certainly paid nobody: the hold returns. */
export function refundPurchase(ctx: Context, unpaid: Purchase, refund: Refund): Promise<Answer | Refusal> {
  const eventId = ctx.newId("event");
  return ctx.store.execute({
    scope: unpaid,
    needs: endingNeeds(unpaid.id),
    decide(snapshot, now): Decision<Answer> {
      const { purchase } = snapshot;
      // In a later phase the seller may have been paid.
      if (purchase?.phase !== unpaid.phase) return { answer: ENDED_MEANWHILE };
      return decideRefund(snapshot, purchase, { ...refund, eventId, now });
    },
  });
}

/**
 * held → refunded by `system`; after an interruption the warrant may also be verifying. One commit has the
 * move, the purchase's end and the answer.
 *
 * @param purchase the snapshot's purchase, which certainly paid nobody
 */
export function decideRefund(
  snapshot: Ending,
  purchase: Purchase,
  {
    eventId,
    now,
    reasonCode,
    money = UNPAID,
    verdict = "neither",
  }: Refund & { readonly eventId: string; readonly now: number },
): Decision<Answer> {
  const ended = endedPurchase(purchase, money, now);
  const moved = moveBought(
    snapshot,
    ended,
    { to: "refunded", by: "system" },
    { actor: SYSTEM, eventId, now, verdict },
  );
  if (isRefusal(moved)) return { answer: moved };
  return endWith(snapshot, ended, moved, { passed: false, reasonCodes: [reasonCode] });
}

const endedPurchase = (purchase: Purchase, money: Money, now: number): Purchase => ({
  ...purchase,
  ...money,
  phase: "ended",
  // What was reserved for an answer that never came is given back.
  contentBytes: purchase.responseHash === null ? 0 : purchase.contentBytes,
  endedAt: now,
  nextCheckAt: money.known === "unknown" ? nextCheckAt(purchase, now) : null,
});

const endWith = (
  { heldKey }: Ending,
  ended: Purchase,
  { warrant, change }: Moved,
  result: Result,
): Decision<Answer> => finishPurchase(heldKey, ended, warrant, result, change.put);
