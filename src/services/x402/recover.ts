import type { Evidence } from "../../core/clauses/evidence.ts";
import { isRefusal } from "../../core/errors.ts";
import type { Instance } from "../../core/instance.ts";
import { type Purchase, RECOVERY, type Recovery } from "../../core/x402/purchase.ts";
import type { Reader } from "../../store/reader.ts";
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
export function recoveryOf(instance: Instance, { phase, quote, nonce, createdAt }: Purchase): Recovery {
  if (phase === "held" && nonce !== null && mayBeOutdated(instance, createdAt)) return "escalate";
  return RECOVERY[phase][quote?.pays.kind ?? "voucher"];
}

/**
 * Ends a purchase that nobody works on any more, since the process ended or a step failed. Its key gets its answer, or is free
 * where nothing was held. A purchase that this process is working on is left alone; one that somebody else has moved on since
 * it was read stays as it is.
 *
 * @returns whether it ended
 */
export async function recoverPurchase(ctx: Context, { id }: Purchase): Promise<boolean> {
  const { underWay } = ctx.x402;
  if (underWay.has(id)) return false;
  underWay.add(id);
  try {
    // It may have moved on since it was found, and ended.
    const found = await ctx.store.read((reader) => findCutOff(reader, id));
    const ended = found !== null && (await endOf(ctx, found));
    return !isRefusal(ended) && ended !== false;
  } finally {
    underWay.delete(id);
  }
}

type CutOff = {
  readonly purchase: Purchase;
  readonly recovery: Recovery;
  /** Of the seller's answer, where one was kept. */
  readonly evidence: Evidence;
};

/** The purchase as it is now; null where it has ended. */
async function findCutOff(reader: Reader, id: string): Promise<CutOff | null> {
  const purchase = await reader.purchases.get(id);
  if (!purchase || purchase.phase === "ended") return null;
  return {
    purchase,
    recovery: recoveryOf(await reader.instance.get(), purchase),
    evidence: await evidenceKept(reader, purchase),
  };
}

async function endOf(ctx: Context, { purchase, recovery, evidence }: CutOff) {
  switch (recovery) {
    case "forget":
      return forgetPurchase(ctx, purchase);
    case "refund":
      return refundPurchase(ctx, purchase, { reasonCode: "source_unreachable" });
    case "escalate":
      return settlePurchase(ctx, purchase, evidence, NOT_KNOWN);
    case "settle":
      return settlePurchase(ctx, purchase, evidence, await moneyOf(ctx, purchase));
    case "nothing":
      return false;
  }
}
