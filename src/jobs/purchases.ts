import type { Recovery } from "../core/x402/purchase.ts";
import type { Context } from "../services/context.ts";
import { CHECK_MS_MAX } from "../services/x402/money.ts";
import { reconcilePurchase } from "../services/x402/reconcile.ts";
import { recoverPurchase, recoveryOf } from "../services/x402/recover.ts";

/** How many purchases are ended together. Each may have an answer of 10 MiB. */
const RECOVER_STEP = 10;
/** About how many payments one run asks the chains about. */
const RECONCILE_MAX = 50;

/** Is called for a purchase that could not be ended. The run goes on with the others; the next run tries it again. */
type OnFault = (error: unknown, purchaseId: string) => void;

/**
 * Ends the purchases without an answer that a crash cut off, before any request is served; that needs no
 * chain. The job ends the others, whose stored answer must be evaluated.
 */
export const recoverPurchasesAtStart = (ctx: Context, onFault: OnFault): Promise<number> =>
  recoverWhere(ctx, onFault, (recovery) => recovery !== "settle");

/**
 * Ends every unfinished purchase that a crash or a fault cut off. Those that a request is working on are left
 * alone, also where that is a request of another instance.
 */
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
    // After the read: whoever works on one of them has said so before it began.
    const owned = await ctx.instances.owned(batch.map(({ id }) => id));
    const outcomes = await Promise.all(
      batch
        .filter((purchase) => !owned.has(purchase.id) && isMeant(recoveryOf(instance, purchase)))
        .map((purchase) => recoverPurchase(ctx, purchase).catch((error) => onFault(error, purchase.id))),
    );
    recovered += outcomes.filter((outcome) => outcome === true).length;
    const last = batch.at(-1);
    if (!last || batch.length < RECOVER_STEP) return recovered;
    afterId = last.id;
  }
}

/** Is called once for a purchase whose chain says otherwise than the person who attested its payment. */
type OnContradiction = (purchaseId: string) => void;

/**
 * Asks the chains about payments whose next question is due: unknown ones, and those that only a person has
 * attested. A question further ahead than any is planned counts as due too, since a clock that was ahead has
 * written it.
 *
 * @returns how many payments became known
 */
export async function reconcilePurchases(
  ctx: Context,
  onFault: OnFault,
  onContradiction: OnContradiction,
): Promise<number> {
  const now = ctx.now();
  const due = await ctx.store.read((reader) =>
    reader.purchases.toCheck(now, now + CHECK_MS_MAX, RECONCILE_MAX),
  );
  const outcomes = await Promise.all(
    due.map(async (purchase) => {
      try {
        const outcome = await reconcilePurchase(ctx, purchase);
        if (outcome === "contradicted") onContradiction(purchase.id);
        return outcome;
      } catch (error) {
        return onFault(error, purchase.id);
      }
    }),
  );
  return outcomes.filter((outcome) => outcome === "settled").length;
}
