import { isRefusal, type Refusal } from "../../core/errors.ts";
import { ACCESS, type Caller } from "../../core/roles.ts";
import { chargeSession } from "../../core/session.ts";
import { countedBytes } from "../../core/x402/content.ts";
import type { Purchase } from "../../core/x402/purchase.ts";
import type { FirstAnswer } from "../../platform/x402-request.ts";
import type { Change, Put } from "../../store/change.ts";
import type { IdempotencyKey } from "../../store/rows.ts";
import type { Decision } from "../../store/store.ts";
import type { Context } from "../context.ts";
import { type Answer, claim, executeKeyed, free, type Idempotency } from "../idempotency.ts";
import { TOO_MANY_CHECKS } from "../in-place.ts";
import { windowsFor } from "../warrants/hold.ts";
import { openingNeeds, refuseOpening, refuseUnknownSchema } from "../warrants/opening.ts";
import { ENDED_MEANWHILE, finishPurchase } from "./answer.ts";
import { givenUp, keptContent } from "./content.ts";
import { type Order, openingFor } from "./order.ts";

/**
 * The first commit of a purchase. It makes all checks of an open that need no quote, and claims the key for
 * the purchase; no seller has been asked yet. Without a place no purchase begins. A replay and every other
 * refusal still come first.
 */
export function beginPurchase(
  ctx: Context,
  caller: Caller,
  order: Order,
  idempotency: Idempotency,
  { id, hasPlace }: { readonly id: string; readonly hasPlace: boolean },
): Promise<Purchase | Answer | Refusal> {
  const opening = openingFor(order);
  return executeKeyed(ctx.store, {
    caller,
    access: ACCESS.openWarrant,
    idempotency,
    needs: { ...openingNeeds(opening), sessionWindows: windowsFor(0n) },
    refuseBody: (snapshot) => refuseUnknownSchema(snapshot, opening.clauses),
    decide(snapshot, { now, caller: present, key }): Decision<Purchase | Answer> {
      const refused = refuseOpening(snapshot, present, opening);
      if (refused) return { answer: refused };
      const { agentSession, sessionWindows } = snapshot;
      // A charge of nothing checks every limit of the session that needs no quote.
      const nothing = { ...opening, amount: 0n, payee: null };
      const session = agentSession && chargeSession(agentSession, nothing, sessionWindows, now);
      if (isRefusal(session)) return { answer: session };
      if (!hasPlace) return { answer: TOO_MANY_CHECKS };
      const purchase = newPurchase(present, order, id, key.createdAt);
      return {
        answer: purchase,
        change: { put: [{ kind: "purchase", before: null, row: purchase }, claim(key, purchase.id)] },
      };
    },
  });
}

/** It is as old as its key, by which the key and what was bought are forgotten together. */
const newPurchase = (caller: Caller, order: Order, id: string, recordedAt: number): Purchase => ({
  id,
  organisationId: caller.organisationId,
  mode: caller.mode,
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
  chainSaid: null,
  acknowledgedAt: null,
  transaction: null,
  responseStatus: null,
  responseHash: null,
  responseLastModifiedAt: null,
  contentBytes: 0,
  createdAt: recordedAt,
  answeredAt: null,
  endedAt: null,
  nextCheckAt: null,
  chainSilentSince: null,
});

/**
 * The change that deletes a purchase in the phase `quoting`, for which nothing was held, and frees its key.
 */
export const forgetting = (quoting: Purchase, heldKey: IdempotencyKey | null): Change => ({
  put: [],
  deleted: [{ kind: "purchase", row: quoting }, ...(heldKey ? [free(heldKey)] : [])],
});

/**
 * Forgets a purchase for which nothing was held, and answers whether it did. A purchase that has moved on
 * stays.
 */
export function forgetPurchase(ctx: Context, quoting: Purchase): Promise<boolean | Refusal> {
  return ctx.store.execute({
    scope: quoting,
    needs: { purchase: quoting.id, heldKey: quoting.id },
    decide: ({ purchase, heldKey }) =>
      purchase?.phase === "quoting"
        ? { answer: true, change: forgetting(purchase, heldKey) }
        : { answer: false },
  });
}

/**
 * Ends a purchase whose seller asked for no payment: nothing was held, and the seller's first answer is the
 * answer. The oldest free content goes where there is no room for this one.
 */
export async function passThrough(
  ctx: Context,
  quoting: Purchase,
  first: FirstAnswer,
): Promise<Answer | Refusal> {
  for (let mayBeFull = false; ; mayBeFull = true) {
    const passed = await endPassed(ctx, quoting, first, mayBeFull);
    if (passed !== "more room is needed") return passed;
  }
}

function endPassed(ctx: Context, quoting: Purchase, { status, evidence }: FirstAnswer, mayBeFull: boolean) {
  const content = keptContent(evidence);
  const contentBytes = countedBytes(content.bytes.length);
  const { freeBytesMax } = ctx.x402;
  return ctx.store.execute({
    scope: quoting,
    needs: {
      purchase: quoting.id,
      heldKey: quoting.id,
      contentBytes: "free",
      // Mostly there is room.
      oldestFree: mayBeFull || null,
    },
    decide(
      { purchase, heldKey, contentBytes: kept, oldestFree },
      now,
    ): Decision<Answer | "more room is needed"> {
      if (purchase?.phase !== "quoting") return { answer: ENDED_MEANWHILE };
      const { puts, bytes } = makeRoom(kept, oldestFree, freeBytesMax - contentBytes);
      if (bytes + contentBytes > freeBytesMax)
        return { answer: "more room is needed", change: { put: puts } };
      const ended: Purchase = {
        ...purchase,
        phase: "ended",
        responseStatus: status,
        responseHash: content.hash,
        contentBytes,
        answeredAt: now,
        endedAt: now,
      };
      return finishPurchase(heldKey, ended, null, { passed: false, reasonCodes: [] }, [
        ...puts,
        { kind: "content", row: content },
        { kind: "purchase", before: purchase, row: ended },
      ]);
    },
  });
}

/** Gives up the oldest free content, until at most so much is kept or there is no more of it. Answers how much is kept then. */
function makeRoom(kept: number, oldest: readonly Purchase[], bytesMax: number) {
  let bytes = kept;
  const puts: Put[] = [];
  for (const purchase of oldest) {
    if (bytes <= bytesMax) break;
    bytes -= purchase.contentBytes;
    puts.push(givenUp(purchase));
  }
  return { puts, bytes };
}
