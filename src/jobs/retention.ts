import { isRefusal } from "../core/errors.ts";
import { DAY_MS } from "../core/time.ts";
import type { Context } from "../services/context.ts";

/** How many rows of a kind one step deletes. A step is one transaction; requests get their turn between steps. */
const STEP = 100;
/** The steps of one run. The next run deletes what is left. */
const STEPS_MAX = 1_000;

/** How long sign-ins, one-time links and approvals are kept once they have ended. */
const ENDED_MS = DAY_MS;
/** How long a webhook delivery is kept that will not be tried again; until then it can be sent anew. */
const DELIVERY_MS = 30 * DAY_MS;

/**
 * Deletes what nobody needs any more (README, "Retention"): idempotency keys after so many days, unless one is in flight,
 * with the bodies that only they replay; ended sign-ins, one-time links and unused approvals after a day; finished webhook
 * deliveries after 30 days.
 *
 * A key that is forgotten too early lets the same request hold twice. So ages are not counted by the clock, which may jump, but
 * by the time that has passed while a server ran.
 *
 * @param elapsedMs how much time has passed since the last run, by a clock that never jumps
 * @param idempotencyDays null where the last server's setting is to be used
 * @returns how many rows it deleted
 */
export async function forgetOld(
  ctx: Context,
  elapsedMs: number,
  idempotencyDays: number | null,
): Promise<number> {
  const { until, days } = await countRetention(ctx, elapsedMs, idempotencyDays);
  const retention = {
    idempotencyKeysBefore: until - days * DAY_MS,
    endedBefore: until - ENDED_MS,
    deliveriesBefore: until - DELIVERY_MS,
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

/** The time by which ages are counted now, which is kept for the next run. It is never ahead of the clock. */
async function countRetention(
  ctx: Context,
  elapsedMs: number,
  idempotencyDays: number | null,
): Promise<{ readonly until: number; readonly days: number }> {
  const counted = await ctx.store.execute({
    scope: null,
    needs: {},
    decide({ instance }, now) {
      const last = instance.retentionAt ?? instance.createdAt;
      const retentionAt = Math.max(last, Math.min(now, last + elapsedMs));
      const days = idempotencyDays ?? instance.idempotencyDays;
      // Before the first server it is not known for how long keys are kept.
      const answer = { until: Math.min(now, retentionAt), days: days ?? Number.POSITIVE_INFINITY };
      if (retentionAt === instance.retentionAt && days === instance.idempotencyDays) return { answer };
      const row = { ...instance, retentionAt, idempotencyDays: days };
      return { answer, change: { put: [{ kind: "instance", before: instance, row }] } };
    },
  });
  if (isRefusal(counted)) throw new Error(counted.message);
  return counted;
}
