import { isRefusal } from "../../core/errors.ts";
import { type Purchase, RECOVERY, type Recovery } from "../../core/x402/purchase.ts";
import type { Context } from "../context.ts";
import { mayBeOutdated } from "../instance.ts";
import { forgetPurchase } from "./begin.ts";
import { evidenceKept } from "./content.ts";
import { moneyOf, NOT_KNOWN } from "./money.ts";
import { refundPurchase, settlePurchase } from "./settle.ts";

/**
 * What recovery does with a purchase that was cut off. In a copy that was restored, what is held may have been signed and paid
 * after the copy was made: whether it was, the chain knows.
 */
export function recoveryOf(ctx: Context, { phase, quote, nonce, createdAt }: Purchase): Recovery {
  if (phase === "held" && nonce !== null && mayBeOutdated(ctx.store.reader.instance.get(), createdAt))
    return "escalate";
  return RECOVERY[phase][quote?.pays.kind ?? "voucher"];
}

/**
 * Ends a purchase that nobody works on any more, since the process ended or a step failed (decisions.md, x402). Its key gets its
 * answer, or is free where nothing was held. Whether it ended; a purchase that is under way is left alone.
 */
export async function recoverPurchase(ctx: Context, purchase: Purchase): Promise<boolean> {
  const { underWay } = ctx.x402;
  if (underWay.has(purchase.id)) return false;
  underWay.add(purchase.id);
  try {
    // It may have moved on since it was found, and ended.
    const current = ctx.store.reader.purchases.get(purchase.id);
    const ended = current ? await endOf(ctx, current) : false;
    return !isRefusal(ended) && ended !== false;
  } finally {
    underWay.delete(purchase.id);
  }
}

async function endOf(ctx: Context, purchase: Purchase) {
  switch (recoveryOf(ctx, purchase)) {
    case "forget":
      return forgetPurchase(ctx, purchase);
    case "refund":
      return refundPurchase(ctx, purchase, { reasonCode: "source_unreachable" });
    case "escalate":
      return settlePurchase(ctx, purchase, evidenceKept(ctx, purchase), NOT_KNOWN);
    case "settle":
      return settlePurchase(ctx, purchase, evidenceKept(ctx, purchase), await moneyOf(ctx, purchase));
    case "nothing":
      return false;
  }
}
