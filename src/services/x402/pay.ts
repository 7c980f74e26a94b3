import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import { ACCESS, type Caller, refuseAccess } from "../../core/roles.ts";
import type { Purchase } from "../../core/x402/purchase.ts";
import type { Context } from "../context.ts";
import type { Answer, Idempotency } from "../idempotency.ts";
import { inPlace } from "../in-place.ts";
import { type PaymentAnswer, replayWithContent, withContent } from "./answer.ts";
import { beginPurchase, forgetPurchase, passThrough } from "./begin.ts";
import { holdQuote, quoteOf } from "./hold.ts";
import { moneyOf } from "./money.ts";
import { type Order, type PayInput, parseOrder } from "./order.ts";
import { sendPayment, signPayment } from "./send.ts";
import { settlePurchase } from "./settle.ts";

const PAYMENT_REQUIRED = 402;

/**
 * Requests a URL, pays the price within the caller's ceiling, and settles by whether the answer passes the
 * spec. Each step is on disk before the next begins. Recovery (recover.ts) ends what a crash or fault
 * interrupts. Answers 200, or refuses with nothing held. Two refusals leave the purchase running: after
 * `rate_limit_exceeded` and `idempotency_in_flight`, the same key sent again gets the answer.
 *
 * @param gone aborts where the caller has left: then it waits no more for a place
 */
export async function payForUrl(
  ctx: Context,
  caller: Caller,
  input: PayInput,
  idempotency: Idempotency,
  gone: AbortSignal | null = null,
): Promise<PaymentAnswer | Refusal> {
  const refused = refuseAccess(caller, ACCESS.openWarrant);
  if (refused) return refused;
  const order = parseOrder(input);
  if (isRefusal(order)) return order;
  const id = ctx.newId("purchase");
  ctx.x402.underWay.add(id);
  try {
    return await inPlace(ctx, caller, gone, async (hasPlace) => {
      const purchase = async () => {
        const begun = await beginPurchase(ctx, caller, order, idempotency, { id, hasPlace });
        if (isRefusal(begun)) return begun;
        if ("replayed" in begun) return replayWithContent(ctx, begun);
        const bought = await buy(ctx, caller, order, begun);
        // From memory: what cost nothing may have made room for something newer already.
        return isRefusal(bought) ? bought : withContent(bought.answer, bought.bytes);
      };
      return hasPlace ? ctx.instances.owning(id, purchase) : purchase();
    });
  } finally {
    ctx.x402.underWay.delete(id);
  }
}

/** The answer, and the seller's bytes for its body; null where the seller sent none. */
type Bought = { readonly answer: Answer; readonly bytes: Uint8Array | null };

const boughtOf = (answer: Answer | Refusal, bytes: Uint8Array | null): Bought | Refusal =>
  isRefusal(answer) ? answer : { answer, bytes };

async function buy(ctx: Context, caller: Caller, order: Order, quoting: Purchase): Promise<Bought | Refusal> {
  const { url, method, headers } = order;
  const first = await ctx.x402.ask(
    { url, method, headers },
    { party: caller.organisationId, live: caller.mode === "live" },
  );
  if (isRefusal(first)) return refuseForgetting(ctx, quoting, first);
  if ("problem" in first) {
    const unreachable = refuse(
      "upstream_unreachable",
      `The seller was not asked with success: ${first.problem}.`,
    );
    return refuseForgetting(ctx, quoting, unreachable);
  }
  if (first.status !== PAYMENT_REQUIRED)
    return boughtOf(await passThrough(ctx, quoting, first), first.evidence.body);
  const quote = quoteOf(ctx, caller, order, first);
  if (isRefusal(quote)) return refuseForgetting(ctx, quoting, quote);
  const held = await holdQuote(ctx, caller, order, quoting, quote);
  if (isRefusal(held)) return held;
  const signed = await signPayment(ctx, held, first.url);
  if (isRefusal(signed)) return signed;
  if ("replayed" in signed) return { answer: signed, bytes: null };
  // The payment is sent once and never repeated: if the request breaks off, the seller may still have taken
  // it.
  const answered = await sendPayment(ctx, signed, { url: first.url, method, headers });
  if (isRefusal(answered)) return answered;
  const { purchase, evidence, answer } = answered;
  const settled = await settlePurchase(ctx, purchase, evidence, await moneyOf(ctx, purchase), answer);
  return boughtOf(settled, evidence.reached ? evidence.body : null);
}

async function refuseForgetting(ctx: Context, quoting: Purchase, refusal: Refusal): Promise<Refusal> {
  await forgetPurchase(ctx, quoting);
  return refusal;
}
