import { isRefusal } from "../../core/errors.ts";
import { exampleBody } from "../../core/example-event.ts";
import {
  type AttemptResult,
  attemptHeaders,
  beginAttempt,
  endAttempt,
  eventBody,
  giveUp,
  NOT_SENT,
  returnAttempt,
  type WebhookDelivery,
  type WebhookEndpoint,
} from "../../core/webhook.ts";
import type { Command } from "../../store/store.ts";
import type { Context } from "../context.ts";

/** Hears of an attempt that failed on our side; the delivery goes on by its schedule. */
export type OnDeliveryFault = (error: unknown, deliveryId: string) => void;

/** An attempt that is begun: nobody else begins it. */
export type Begun = { readonly endpoint: WebhookEndpoint; readonly delivery: WebhookDelivery };

/** A command that refuses nothing. */
async function execute<Answer>(ctx: Context, command: Command<Answer>): Promise<Answer> {
  const answer = await ctx.store.execute(command);
  if (isRefusal(answer)) throw new Error(answer.message);
  return answer;
}

/**
 * Begins the attempt that is due at this time; null where somebody else has begun it. Of a disabled endpoint's delivery, it
 * ends without another attempt.
 */
export const beginDueAttempt = (
  ctx: Context,
  { id, webhookId, organisationId, mode }: WebhookDelivery,
  now: number,
): Promise<Begun | null> =>
  execute<Begun | null>(ctx, {
    scope: { organisationId, mode },
    needs: { webhookId, deliveryId: id },
    decide: ({ webhook, delivery }) => {
      const begun = delivery && beginAttempt(delivery, now);
      if (!webhook || !begun) return { answer: null };
      if (webhook.disabled) {
        return { answer: null, change: { rows: [{ kind: "delivery", row: giveUp(delivery) }] } };
      }
      return {
        answer: { endpoint: webhook, delivery: begun },
        change: { rows: [{ kind: "delivery", row: begun }] },
      };
    },
  });

/** Sends an attempt. What went wrong on our side is told, and is a failed attempt; null where the secret does not open. */
export async function sendAttempt(
  ctx: Context,
  { endpoint, delivery }: Begun,
  onFault: OnDeliveryFault,
): Promise<AttemptResult | null> {
  let secret: string;
  try {
    secret = ctx.vault.open(endpoint.sealedSecret, endpoint.id);
  } catch (cause) {
    const problem = `the signing secret of ${endpoint.id} was sealed with another master key`;
    onFault(new Error(problem, { cause }), delivery.id);
    ctx.deliveryFailures.notSent++;
    return null;
  }
  try {
    const body = bodyOf(ctx, delivery);
    const headers = attemptHeaders(delivery, secret, body, ctx.now());
    return await ctx.sendWebhook({ url: endpoint.url, headers, body });
  } catch (error) {
    onFault(error, delivery.id);
    ctx.deliveryFailures.notSent++;
    return NOT_SENT;
  }
}

/** The same at every attempt. */
function bodyOf(ctx: Context, delivery: WebhookDelivery): string {
  const { warrantId, sequence, mode } = delivery;
  if (warrantId === null) return exampleBody(delivery);
  const entry = ctx.store.reader.trace.of(warrantId).find((one) => one.sequence === sequence);
  if (!entry?.event) throw new Error(`there is no event ${delivery.eventId} in the trace`);
  return eventBody(entry.event, mode, entry.recordedAt, entry.payload);
}

/** Records how an attempt ended, or with null that none could be made; answers null where it was given up meanwhile. */
export async function endBegunAttempt(
  ctx: Context,
  { delivery: begun }: Begun,
  result: AttemptResult | null,
): Promise<WebhookDelivery | null> {
  const now = ctx.now();
  const ended = await execute<WebhookDelivery | null>(ctx, {
    scope: begun,
    needs: { deliveryId: begun.id },
    decide: ({ delivery }) => {
      if (!delivery || delivery.claimedUntil === null || delivery.attempts !== begun.attempts) {
        return { answer: null };
      }
      const row = result ? endAttempt(delivery, result, now) : returnAttempt(delivery, now);
      return { answer: row, change: { rows: [{ kind: "delivery", row }] } };
    },
  });
  if (ended?.status === "exhausted") ctx.deliveryFailures.exhausted++;
  return ended;
}
