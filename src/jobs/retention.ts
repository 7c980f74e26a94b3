import { DAY_MS } from "../core/time.ts";
import type { Context } from "../services/context.ts";

/**
 * How many rows of a kind one step deletes. Each step is a transaction, and requests are served between
 * steps.
 */
const STEP = 100;
/** The steps of one run. The next run deletes what is left. */
const STEPS_MAX = 1_000;

/** How long sign-ins, one-time links and approvals are kept once they have ended. */
const ENDED_MS = DAY_MS;
/** How long a webhook delivery is kept that will not be tried again; until then it can be sent anew. */
const DELIVERY_MS = 30 * DAY_MS;

/**
 * Deletes old rows (README, "Retention"): idempotency keys after `idempotencyDays`, except those in flight,
 * with the contents that only they replay; ended sign-ins, one-time links and unused approvals after a day;
 * finished webhook deliveries after 30 days.
 *
 * @returns how many rows it deleted
 */
export async function forgetOld(ctx: Context, idempotencyDays: number): Promise<number> {
  const now = ctx.now();
  const retention = {
    idempotencyKeysBefore: now - idempotencyDays * DAY_MS,
    endedBefore: now - ENDED_MS,
    deliveriesBefore: now - DELIVERY_MS,
  };
  let forgotten = 0;
  for (let step = 0; step < STEPS_MAX; step++) {
    const deleted = await ctx.store.forget(retention, STEP);
    forgotten += deleted;
    if (deleted === 0) break;
    await new Promise(setImmediate);
  }
  return forgotten;
}
