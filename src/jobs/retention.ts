import { isRefusal } from "../core/errors.ts";
import { addMark, recordedBefore } from "../core/retention.ts";
import { DAY_MS } from "../core/time.ts";
import { forgetCapsules } from "../services/checks/capsule.ts";
import type { Context } from "../services/context.ts";
import { forgetContents } from "../services/x402/content.ts";

/** How many rows of a kind one step deletes. A step is one transaction; requests get their turn between steps. */
const STEP = 100;
/** The steps of one run. The next run deletes what is left. */
const STEPS_MAX = 1_000;

/** How long sign-ins, one-time links and approvals are kept once they have ended. */
const ENDED_MS = DAY_MS;
/** How long a webhook delivery is kept that will not be tried again; until then it can be sent anew. */
const DELIVERY_MS = 30 * DAY_MS;

/**
 * The server's own retention: counts how long it has run, from now on, and then forgets.
 *
 * @param monotonicNow a clock that never jumps, in milliseconds
 * @returns a run that may be called at any time; it answers how many rows it deleted
 */
export function retentionJob(
  ctx: Context,
  idempotencyDays: number,
  monotonicNow: () => number,
): () => Promise<number> {
  let countedAt = monotonicNow();
  return async () => {
    const elapsedMs = Math.floor(monotonicNow() - countedAt);
    try {
      await countRunningTime(ctx, elapsedMs, idempotencyDays);
    } finally {
      // What passed during the commit is not counted: records of that time would be taken for older than they are. Nor is
      // anything counted again after a fault, which may have come after the commit.
      countedAt = monotonicNow();
    }
    return forgetOld(ctx);
  };
}

/**
 * Counts the time that a server has run, and sets a mark to find by it later what is old.
 *
 * @param elapsedMs how long it has run since the last count, by a clock that never jumps. Less is safe; more is
 *   not, since a key that is forgotten too early lets the same request hold twice
 * @param idempotencyDays for how long it keeps idempotency keys
 */
export async function countRunningTime(
  ctx: Context,
  elapsedMs: number,
  idempotencyDays: number,
): Promise<void> {
  const { days: capsuleDays } = ctx.capsules;
  const longestMs = Math.max(idempotencyDays * DAY_MS, capsuleDays * DAY_MS, DELIVERY_MS);
  const counted = await ctx.store.execute({
    scope: null,
    needs: {},
    decide({ instance, recordedAt }) {
      const retentionMarks = addMark(instance.retentionMarks, elapsedMs, recordedAt, longestMs);
      const row = { ...instance, retentionMarks, idempotencyDays, capsuleDays };
      return { answer: true, change: { put: [{ kind: "instance", before: instance, row }] } };
    },
  });
  if (isRefusal(counted)) throw new Error(counted.message);
}

/**
 * Deletes what nobody needs any more (docs/operating, "Retention"): idempotency keys after some days, unless one is in flight, and
 * what was bought under them; what sellers gave for nothing, within an hour; ended sign-ins, one-time links and unused approvals
 * after a day; finished webhook deliveries after 30 days; capsules of checks after some days. The server counts how much
 * time has passed; its settings say for how many days keys and capsules are kept.
 *
 * @returns how many rows it deleted
 */
export async function forgetOld(ctx: Context): Promise<number> {
  const { retentionMarks, idempotencyDays, capsuleDays } = await ctx.store.read((reader) =>
    reader.instance.get(),
  );
  const before = (limitMs: number) => recordedBefore(retentionMarks, limitMs);
  const retention = {
    // Before the first server it is not known for how long keys are kept.
    idempotencyKeysBefore: idempotencyDays === null ? 0 : before(idempotencyDays * DAY_MS),
    endedBefore: before(ENDED_MS),
    deliveriesBefore: before(DELIVERY_MS),
  };
  const capsulesBefore = capsuleDays === null ? 0 : before(capsuleDays * DAY_MS);
  let forgotten = 0;
  for (let step = 0; step < STEPS_MAX; step++) {
    // Contents come after all keys: while one is remembered, so is what it replays.
    const deleted =
      (await ctx.store.forget(retention, STEP)) ||
      (await forgetContents(ctx, retention.idempotencyKeysBefore)) ||
      (await forgetCapsules(ctx, capsulesBefore));
    forgotten += deleted;
    if (deleted === 0) break;
    await new Promise(setImmediate);
  }
  return forgotten;
}
