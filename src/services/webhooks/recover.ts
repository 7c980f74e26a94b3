import { isRefusal } from "../../core/errors.ts";
import {
  CLAIM_MS,
  CUT_OFF,
  endAttempt,
  reschedule,
  WAIT_MS_MAX,
  type WebhookDelivery,
} from "../../core/webhook.ts";
import type { Decision } from "../../store/store.ts";
import type { Context } from "../context.ts";
import { countLost } from "./attempt.ts";

const STEP = 100;

/**
 * At the start, puts deliveries whose attempt a crash cut off back on their schedule. An attempt of a running
 * `jobs run webhooks` looks the same and is repeated: events are delivered at least once.
 *
 * @returns how many there were
 */
export async function recoverDeliveriesAtStart(ctx: Context): Promise<number> {
  // Another instance may make the attempt. Where it is dead, its claim ends by itself within half a minute.
  if (!ctx.instances.alone) return 0;
  let recovered = 0;
  for (;;) {
    const claimed = await ctx.store.read((reader) => reader.deliveries.cutOff(Number.MAX_SAFE_INTEGER, STEP));
    await Promise.all(
      claimed.map((delivery) =>
        recoverDelivery(ctx, delivery, (found, now) =>
          found.claimedUntil === null ? null : endAttempt(found, CUT_OFF, now),
        ),
      ),
    );
    recovered += claimed.length;
    if (claimed.length < STEP) return recovered;
  }
}

/**
 * While the server runs, puts deliveries back on their schedule: those that were cut off, and those whose
 * times were written before the clock was set back.
 */
export async function recoverDeliveries(ctx: Context): Promise<void> {
  const now = ctx.now();
  const offSchedule = await ctx.store.read(async ({ deliveries }) => [
    ...(await deliveries.cutOff(now, STEP)),
    ...(await deliveries.beyond(now + CLAIM_MS, now + WAIT_MS_MAX, STEP)),
  ]);
  await Promise.all(offSchedule.map((delivery) => recoverDelivery(ctx, delivery, reschedule)));
}

async function recoverDelivery(
  ctx: Context,
  { id, organisationId, mode }: WebhookDelivery,
  after: (delivery: WebhookDelivery, now: number) => WebhookDelivery | null,
): Promise<void> {
  const recovered = await ctx.store.execute({
    scope: { organisationId, mode },
    needs: { delivery: id },
    decide({ delivery }, now): Decision<WebhookDelivery | null> {
      const row = delivery && after(delivery, now);
      if (!row) return { answer: null };
      return { answer: row, change: { put: [{ kind: "delivery", before: delivery, row }] } };
    },
  });
  if (isRefusal(recovered)) throw new Error(recovered.message);
  if (recovered?.status === "exhausted") countLost(ctx, recovered);
}
