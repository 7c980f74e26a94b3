import { isRefusal } from "../../core/errors.ts";
import {
  CLAIM_MS,
  CUT_OFF,
  endAttempt,
  mend,
  WAIT_MS_MAX,
  type WebhookDelivery,
} from "../../core/webhook.ts";
import type { Context } from "../context.ts";

const STEP = 100;

/**
 * At start: what a crash cut off goes on by the schedule. An attempt that `jobs run webhooks` has under way looks the same, and
 * is made again: at least once. How many there were.
 */
export async function recoverDeliveriesAtStart(ctx: Context): Promise<number> {
  let recovered = 0;
  for (;;) {
    const claimed = ctx.store.reader.deliveries.cutOff(Number.MAX_SAFE_INTEGER, STEP);
    await Promise.all(
      claimed.map((delivery) =>
        mendDelivery(ctx, delivery, (found, now) =>
          found.claimedUntil === null ? null : endAttempt(found, CUT_OFF, now),
        ),
      ),
    );
    recovered += claimed.length;
    if (claimed.length < STEP) return recovered;
  }
}

/** While running: attempts that should have ended, and what was written before the clock was set back. */
export async function recoverDeliveries(ctx: Context): Promise<void> {
  const { deliveries } = ctx.store.reader;
  const now = ctx.now();
  const astray = [
    ...deliveries.cutOff(now, STEP),
    ...deliveries.beyond(now + CLAIM_MS, now + WAIT_MS_MAX, STEP),
  ];
  await Promise.all(astray.map((delivery) => mendDelivery(ctx, delivery, mend)));
}

async function mendDelivery(
  ctx: Context,
  { id, organisationId, mode }: WebhookDelivery,
  mended: (delivery: WebhookDelivery, now: number) => WebhookDelivery | null,
): Promise<void> {
  const now = ctx.now();
  const done = await ctx.store.execute<WebhookDelivery | null>({
    scope: { organisationId, mode },
    needs: { deliveryId: id },
    decide: ({ delivery }) => {
      const row = delivery && mended(delivery, now);
      return { answer: row, ...(row && { change: { rows: [{ kind: "delivery", row }] } }) };
    },
  });
  if (isRefusal(done)) throw new Error(done.message);
  if (done?.status === "exhausted") ctx.deliveryFailures.exhausted++;
}
