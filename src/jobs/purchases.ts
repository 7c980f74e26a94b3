import type { Recovery } from "../core/x402/purchase.ts";
import type { Context } from "../services/context.ts";
import { CHECK_MS_MAX } from "../services/x402/money.ts";
import { reconcilePurchase } from "../services/x402/reconcile.ts";
import { recoverPurchase, recoveryOf } from "../services/x402/recover.ts";

/** How many are ended at a time: each may have an answer of 10 MiB. */
const RECOVER_STEP = 10;
/** How many payments are asked for in one run. */
const RECONCILE_MAX = 50;

/** Hears of a purchase that could not be ended; the others are, and it is tried again with the next run. */
type OnFault = (error: unknown, purchaseId: string) => void;

/**
 * At start nobody works on any purchase: those that nothing came back of need no chain and are ended before anybody is served.
 * The job ends the others, whose answer is kept.
 */
export const recoverPurchasesAtStart = (ctx: Context, onFault: OnFault): Promise<number> =>
  recoverWhere(ctx, onFault, (recovery) => recovery !== "settle");

/** Every purchase that has not ended and that nobody works on, since a crash or a fault cut it off, is ended. */
export const recoverPurchases = (ctx: Context, onFault: OnFault): Promise<number> =>
  recoverWhere(ctx, onFault, () => true);

async function recoverWhere(
  ctx: Context,
  onFault: OnFault,
  isMeant: (recovery: Recovery) => boolean,
): Promise<number> {
  let recovered = 0;
  let afterId = "";
  for (;;) {
    const { batch, instance } = await ctx.store.read(async (reader) => ({
      batch: await reader.purchases.unfinished(afterId, RECOVER_STEP),
      instance: await reader.instance.get(),
    }));
    const outcomes = await Promise.all(
      batch
        .filter((purchase) => isMeant(recoveryOf(instance, purchase)))
        .map((purchase) => recoverPurchase(ctx, purchase).catch((error) => onFault(error, purchase.id))),
    );
    recovered += outcomes.filter((outcome) => outcome === true).length;
    const last = batch.at(-1);
    if (!last || batch.length < RECOVER_STEP) return recovered;
    afterId = last.id;
  }
}

/**
 * Finds out about payments that are not known: the chain is asked about those that are due. So it is about those whose next
 * question lies further ahead than one ever does: a clock that was ahead has written it.
 *
 * @returns how many it found out
 */
export async function reconcilePurchases(ctx: Context, onFault: OnFault): Promise<number> {
  const now = ctx.now();
  const due = await ctx.store.read((reader) =>
    reader.purchases.toCheck(now, now + CHECK_MS_MAX, RECONCILE_MAX),
  );
  const outcomes = await Promise.all(
    due.map((purchase) => reconcilePurchase(ctx, purchase).catch((error) => onFault(error, purchase.id))),
  );
  return outcomes.filter((outcome) => outcome === true).length;
}
