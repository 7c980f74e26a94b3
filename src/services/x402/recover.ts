import type { Evidence } from "../../core/clauses/evidence.ts";
import { isRefusal } from "../../core/errors.ts";
import type { Instance } from "../../core/instance.ts";
import { type Purchase, RECOVERY, type Recovery } from "../../core/x402/purchase.ts";
import type { Reader } from "../../store/reader.ts";
import type { Context } from "../context.ts";
import { mayBeOutdated, refuseUnacknowledged } from "../instance.ts";
import { forgetPurchase } from "./begin.ts";
import { evidenceKept } from "./content.ts";
import { moneyOf, NOT_KNOWN } from "./money.ts";
import { refundPurchase, settlePurchase } from "./settle.ts";

/**
 * What recovery does with a purchase that was cut off. Where the ledger was restored from a backup, a
 * purchase that is only `held` in it may have been signed and paid after the backup was made; only the chain
 * knows. So it escalates.
 */
export function recoveryOf(instance: Instance, { mode, phase, quote, nonce, createdAt }: Purchase): Recovery {
  if (phase === "held" && nonce !== null && mayBeOutdated(instance, createdAt)) return "escalate";
  const recovery = RECOVERY[phase][quote?.pays.kind ?? "voucher"];
  const movesMoney = recovery === "refund" || recovery === "settle";
  return movesMoney && refuseUnacknowledged(instance, mode) ? "nothing" : recovery;
}

/**
 * Ends a purchase that nobody works on any more, because the process ended or a step failed. Its key gets the
 * answer, or is freed where nothing was held. A purchase that this process is working on, or that somebody
 * else has moved meanwhile, stays as it is.
 *
 * @returns whether it ended
 */
export async function recoverPurchase(ctx: Context, { id }: Purchase): Promise<boolean> {
  const { underWay } = ctx.x402;
  if (underWay.has(id)) return false;
  underWay.add(id);
  try {
    return await ctx.instances.owning(id, async () => {
      // It is read again, since it may have ended after it was found.
      const found = await ctx.store.read((reader) => findCutOff(reader, id));
      const ended = found !== null && (await endOf(ctx, found));
      return !isRefusal(ended) && ended !== false;
    });
  } finally {
    underWay.delete(id);
  }
}

type CutOff = {
  readonly purchase: Purchase;
  readonly recovery: Recovery;
  /** The evidence in the seller's answer, where an answer was stored. */
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
