import type { Refusal } from "../../core/errors.ts";
import { isRefusal } from "../../core/errors.ts";
import { ACCESS, type Caller } from "../../core/roles.ts";
import { chargeSession } from "../../core/session.ts";
import type { Purchase } from "../../core/x402/purchase.ts";
import type { FirstAnswer } from "../../platform/x402-request.ts";
import type { Decision } from "../../store/store.ts";
import type { Context } from "../context.ts";
import { type Answer, bindKey, type Intent, needsOf, refuseEndedCaller, replayOf } from "../intent.ts";
import { TOO_MANY_CHECKS } from "../warrants/check-limiter.ts";
import { needsOfOpening, refuseOpening } from "../warrants/open.ts";
import { recordPayment } from "./answer.ts";
import { keptContent } from "./content.ts";
import { type Order, openingFor } from "./order.ts";

/**
 * The first commit: whatever of an open can be refused before a quote is known is refused, and the key is bound to a purchase
 * that has asked nobody yet. What is not admitted begins nothing, and is still replayed or told what else is wrong.
 */
export function beginPurchase(
  ctx: Context,
  caller: Caller,
  order: Order,
  intent: Intent,
  { id, admitted }: { readonly id: string; readonly admitted: boolean },
): Promise<Purchase | Answer | Refusal> {
  const now = ctx.now();
  const opening = openingFor(order);
  return ctx.store.execute<Purchase | Answer>({
    scope: caller,
    needs: { ...needsOf(caller, intent), opening: needsOfOpening(opening) },
    decide: (snapshot): Decision<Purchase | Answer> => {
      const revoked = refuseEndedCaller(caller, ACCESS.openWarrant, snapshot, now);
      if (revoked) return { answer: revoked };
      const replay = replayOf(snapshot.idempotency, intent);
      if (replay) return { answer: replay };
      const refused = refuseOpening(snapshot, caller, opening, intent);
      if (refused) return { answer: refused };
      // A charge of nothing asks for all but the headroom.
      const session = snapshot.session && chargeSession(snapshot.session, 0n, opening.asset, now);
      if (isRefusal(session)) return { answer: session };
      if (!admitted) return { answer: TOO_MANY_CHECKS };
      const purchase = newPurchase(caller, order, intent, id, now);
      return {
        answer: purchase,
        change: {
          rows: [{ kind: "purchase", row: purchase }],
          idempotency: bindKey(intent, null, now),
        },
      };
    },
  });
}

const newPurchase = (caller: Caller, order: Order, intent: Intent, id: string, now: number): Purchase => ({
  id,
  organisationId: caller.organisationId,
  mode: caller.mode,
  idempotencyKey: intent.key,
  agentId: order.agentId,
  method: order.method,
  url: order.url,
  maxAmount: order.maxAmount,
  phase: "quoting",
  quote: null,
  warrantId: null,
  payer: null,
  nonce: null,
  validBefore: null,
  header: null,
  attempt: null,
  known: null,
  knownBy: null,
  transaction: null,
  responseStatus: null,
  responseHash: null,
  responseLastModifiedAt: null,
  createdAt: now,
  answeredAt: null,
  endedAt: null,
  nextCheckAt: null,
  chainSilentSince: null,
});

/** Nothing was held: the purchase is forgotten and its key is free. */
export function forgetPurchase(ctx: Context, quoting: Purchase): Promise<boolean | Refusal> {
  return ctx.store.execute({
    scope: quoting,
    needs: { purchaseId: quoting.id },
    decide: ({ purchase }) =>
      purchase?.phase === "quoting"
        ? { answer: true, change: { forgetsPurchase: purchase } }
        : { answer: false },
  });
}

/** The first answer was no 402: it is the answer, and nothing was held (decisions.md, x402). */
export function passThrough(
  ctx: Context,
  quoting: Purchase,
  { status, evidence }: FirstAnswer,
): Promise<Answer | Refusal> {
  const now = ctx.now();
  const content = keptContent(evidence);
  return ctx.store.execute<Answer>({
    scope: quoting,
    needs: { purchaseId: quoting.id, idempotencyKey: quoting.idempotencyKey },
    decide: ({ purchase, idempotency: bound }): Decision<Answer> => {
      if (purchase?.phase !== "quoting") throw new Error(`the purchase ${quoting.id} is no longer asking`);
      const ended: Purchase = {
        ...purchase,
        phase: "ended",
        responseStatus: status,
        responseHash: content.hash,
        answeredAt: now,
        endedAt: now,
      };
      const { answer, idempotency } = recordPayment(
        bound,
        ended,
        null,
        { passed: false, reasonCodes: [] },
        now,
      );
      return {
        answer,
        change: {
          rows: [
            { kind: "content", row: content },
            { kind: "purchase", row: ended },
          ],
          idempotency,
        },
      };
    },
  });
}
