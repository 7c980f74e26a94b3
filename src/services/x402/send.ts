import { isStopped } from "../../core/agent.ts";
import type { Refusal } from "../../core/errors.ts";
import { SECOND_MS } from "../../core/time.ts";
import { countedBytes } from "../../core/x402/content.ts";
import type { Attempt, PaymentHeader, Purchase } from "../../core/x402/purchase.ts";
import { maySignUntil } from "../../core/x402/quote.ts";
import { readReceipt } from "../../core/x402/receipt.ts";
import { VOUCHER_TYPE, voucherClaims, voucherHeader } from "../../core/x402/voucher.ts";
import type { PaidAnswer, SellerRequest } from "../../platform/x402-request.ts";
import type { Put } from "../../store/change.ts";
import type { Decision } from "../../store/store.ts";
import type { Context } from "../context.ts";
import type { Answer } from "../idempotency.ts";
import { STOPPING } from "../transition.ts";
import { ENDED_MEANWHILE } from "./answer.ts";
import { keptContent } from "./content.ts";
import type { Held } from "./hold.ts";
import { decideRefund, endingNeeds, refundPurchase } from "./settle.ts";

/**
 * How far before our time an authorization begins to be valid: the clocks of sellers and chains may be slow.
 */
const CLOCK_SKEW_MS = 600 * SECOND_MS;
/** Waits between the attempts to store an answer. A ledger may be busy or out of space only for a moment. */
const KEEP_WAITS_MS = [SECOND_MS, 2 * SECOND_MS, 4 * SECOND_MS, 8 * SECOND_MS];

/**
 * Signs the payment, and stores the header before anything is sent. From here on it counts as sent. Where an
 * agent of the warrant was killed meanwhile, or the authorization's time is over, nothing is signed and the
 * hold returns. Only the caller that gets the purchase back from here may send it.
 *
 * @param url the URL that will be requested with the payment
 */
export async function signPayment(
  ctx: Context,
  held: Held,
  url: string,
): Promise<Purchase | Answer | Refusal> {
  const now = ctx.now();
  const { validBefore } = held.purchase;
  // The hold took longer than the seller allows for the payment, or the clock has jumped since.
  if (validBefore !== null && !maySignUntil(validBefore, now))
    return refundPurchase(ctx, held.purchase, { reasonCode: "source_unreachable" });
  const header = await headerOf(ctx, held, url, now);
  const eventId = ctx.newId("event");
  return ctx.store.execute({
    scope: held.purchase,
    needs: { ...endingNeeds(held.purchase.id), ...STOPPING },
    decide(snapshot, now): Decision<Purchase | Answer> {
      const { purchase } = snapshot;
      if (purchase?.phase !== "held") return { answer: ENDED_MEANWHILE };
      if (isStopped(snapshot)) {
        return decideRefund(snapshot, purchase, { eventId, now, reasonCode: "agent_killed" });
      }
      const signed: Purchase = { ...purchase, phase: "signed", header };
      return { answer: signed, change: { put: [{ kind: "purchase", before: purchase, row: signed }] } };
    },
  });
}

async function headerOf(
  ctx: Context,
  { purchase, warrant, instanceId }: Held,
  url: string,
  now: number,
): Promise<PaymentHeader> {
  const { quote, nonce, validBefore, mode } = purchase;
  if (!quote) throw new Error("nothing is signed without a quote");
  if (quote.pays.kind === "voucher") {
    const promised = { ...warrant, warrantId: warrant.id, url };
    const claims = voucherClaims(promised, ctx.baseUrl, now, warrant.deadline);
    const voucher = await ctx.tokens.sign(JSON.stringify(claims), VOUCHER_TYPE);
    return { name: "X-PAYMENT", value: voucherHeader(instanceId, voucher) };
  }
  const wallet = ctx.x402.wallets[mode];
  if (!wallet || nonce === null || validBefore === null)
    throw new Error("nothing is signed without a wallet");
  const { pays, amount } = quote;
  return wallet.sign({ pays, amount, nonce, validBefore, validAfter: now - CLOCK_SKEW_MS }, now);
}

export type Answered = Pick<PaidAnswer, "evidence" | "answer"> & { readonly purchase: Purchase };

/**
 * Sends the paid request, once, and stores the answer. Storing is tried several times, since the request
 * cannot be repeated.
 *
 * @throws where the answer could not be stored
 */
export async function sendPayment(
  ctx: Context,
  signed: Purchase,
  request: SellerRequest,
): Promise<Answered | Refusal> {
  if (!signed.header) throw new Error("nothing is sent that was not signed");
  const paid = await ctx.x402.pay(request, signed.header);
  const answeredAt = ctx.now();
  const keep = () => keepAnswer(ctx, signed, paid, answeredAt);
  for (const waitMs of KEEP_WAITS_MS) {
    try {
      return await keep();
    } catch {
      await ctx.x402.pause(waitMs);
    }
  }
  return keep();
}

/** signed → answered, with the result of the request. */
function keepAnswer(
  ctx: Context,
  signed: Purchase,
  paid: PaidAnswer,
  answeredAt: number,
): Promise<Answered | Refusal> {
  const { evidence, answer: seen } = paid;
  const content = evidence.reached ? keptContent(evidence) : null;
  const kept: readonly Put[] = content ? [{ kind: "content", row: content }] : [];
  return ctx.store.execute({
    scope: signed,
    needs: { purchase: signed.id },
    decide({ purchase }): Decision<Answered> {
      // An earlier try may have stored the answer although it was reported as failed.
      if (purchase?.phase === "answered") return { answer: { purchase, evidence, answer: seen } };
      if (purchase?.phase !== "signed") return { answer: ENDED_MEANWHILE };
      const answered: Purchase = {
        ...purchase,
        ...attemptOf(purchase, paid),
        phase: "answered",
        responseStatus: evidence.reached ? evidence.status : null,
        responseHash: content?.hash ?? null,
        contentBytes: content ? countedBytes(content.bytes.length) : 0,
        responseLastModifiedAt: evidence.reached ? evidence.lastModifiedAt : null,
        answeredAt,
      };
      return {
        answer: { purchase: answered, evidence, answer: seen },
        change: { put: [...kept, { kind: "purchase", before: purchase, row: answered }] },
      };
    },
  });
}

/**
 * How the request went. A receipt counts even where the body could not be read, since the money has moved.
 */
function attemptOf(
  { quote, payer }: Purchase,
  { connected, headers, evidence }: PaidAnswer,
): { readonly attempt: Attempt; readonly transaction: string | null } {
  if (!connected) return { attempt: "never_connected", transaction: null };
  const answered = evidence.reached ? "answered" : "no_answer";
  if (quote?.pays.kind !== "exact" || payer === null) return { attempt: answered, transaction: null };
  const receipt = readReceipt(headers, quote.pays, quote.amount, payer);
  return "problem" in receipt
    ? { attempt: answered, transaction: null }
    : { attempt: "receipted", transaction: receipt.transaction };
}
