import { isRefusal } from "../../core/errors.ts";
import {
  type AttemptResult,
  attemptHeaders,
  claimAttempt,
  endAttempt,
  giveUp,
  NOT_SENT,
  returnAttempt,
  type WebhookDelivery,
  type WebhookEndpoint,
} from "../../core/webhook.ts";
import { eventBody, exampleBody } from "../../resources/event.ts";
import type { Needs } from "../../store/needs.ts";
import type { Decision, ScopedCommand } from "../../store/store.ts";
import type { Context } from "../context.ts";

/** Is called for an attempt that failed on our side. The delivery continues by its schedule. */
export type OnDeliveryFault = (error: unknown, deliveryId: string) => void;

/** A claimed attempt: nobody else makes it. */
export type Claimed = { readonly endpoint: WebhookEndpoint; readonly delivery: WebhookDelivery };

/** Runs a command that never refuses, so a refusal is a fault. */
async function execute<N extends Needs, Answer>(
  ctx: Context,
  command: ScopedCommand<N, Answer>,
): Promise<Answer> {
  const answer = await ctx.store.execute(command);
  if (isRefusal(answer)) throw new Error(answer.message);
  return answer;
}

/**
 * Claims the attempt that is due; null where none is due, or somebody else has claimed it. Where the endpoint
 * was disabled, the delivery ends without another attempt.
 */
export const claimDueAttempt = (
  ctx: Context,
  { id, webhookId, organisationId, mode }: WebhookDelivery,
): Promise<Claimed | null> =>
  execute(ctx, {
    scope: { organisationId, mode },
    needs: { webhook: webhookId, delivery: id },
    decide({ webhook, delivery }, now): Decision<Claimed | null> {
      const claimed = delivery && claimAttempt(delivery, now);
      if (!webhook || !claimed) return { answer: null };
      const row = webhook.disabled ? giveUp(delivery) : claimed;
      const answer = webhook.disabled ? null : { endpoint: webhook, delivery: claimed };
      return { answer, change: { put: [{ kind: "delivery", before: delivery, row }] } };
    },
  });

/**
 * Sends an attempt. A fault on our side is reported, and counts as a failed attempt. Null where the
 * endpoint's secret cannot be decrypted.
 */
export async function sendAttempt(
  ctx: Context,
  { endpoint, delivery }: Claimed,
  onFault: OnDeliveryFault,
): Promise<AttemptResult | null> {
  let secret: string;
  try {
    secret = ctx.vault.decrypt(endpoint.encryptedSecret, endpoint.id);
  } catch (cause) {
    const problem = `the signing secret of ${endpoint.id} was encrypted with another master key`;
    onFault(new Error(problem, { cause }), delivery.id);
    ctx.deliveryFailures.notSent++;
    return null;
  }
  try {
    const body = await bodyOf(ctx, delivery);
    const headers = attemptHeaders(delivery, secret, body, ctx.now());
    return await ctx.sendWebhook({ url: endpoint.url, headers, body });
  } catch (error) {
    onFault(error, delivery.id);
    ctx.deliveryFailures.notSent++;
    return NOT_SENT;
  }
}

/** The body of a delivery, the same at every attempt. */
export async function bodyOf(ctx: Context, delivery: WebhookDelivery): Promise<string> {
  const { warrantId, sequence, mode } = delivery;
  if (warrantId === null) return exampleBody(delivery);
  const entry = await ctx.store.read((reader) => reader.trace.entry(warrantId, sequence ?? -1));
  if (!entry?.event) throw new Error(`there is no event ${delivery.eventId} in the trace`);
  return eventBody(entry.event, mode, entry.recordedAt, entry.payload);
}

/** Counts a delivery that was given up, for the metrics and for those who are told of it. */
export function countLost(
  { deliveryFailures }: Pick<Context, "deliveryFailures">,
  { webhookId, organisationId, mode }: WebhookDelivery,
): void {
  deliveryFailures.exhausted++;
  deliveryFailures.endpoints.set(webhookId, { organisationId, mode });
}

/**
 * Records the result of an attempt; null stands for one that could not be made. Answers null where the claim
 * was given up meanwhile.
 */
export async function endClaimedAttempt(
  ctx: Context,
  { delivery: claimed }: Claimed,
  result: AttemptResult | null,
): Promise<WebhookDelivery | null> {
  const ended = await execute(ctx, {
    scope: claimed,
    needs: { delivery: claimed.id },
    decide({ delivery }, now): Decision<WebhookDelivery | null> {
      if (!delivery || delivery.claimedUntil === null || delivery.attempts !== claimed.attempts) {
        return { answer: null };
      }
      const row = result ? endAttempt(delivery, result, now) : returnAttempt(delivery, now);
      return { answer: row, change: { put: [{ kind: "delivery", before: delivery, row }] } };
    },
  });
  if (ended?.status === "exhausted") countLost(ctx, ended);
  return ended;
}
