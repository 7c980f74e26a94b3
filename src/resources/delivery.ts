import { count, form, integer, is, object, oneOf, orNull, text, time, type Wire } from "../core/form.ts";
import { isoTime, isoTimeOrNull } from "../core/time.ts";
import { EVENT_TYPES } from "../core/warrant.ts";
import { DELIVERY_STATUSES, type WebhookDelivery } from "../core/webhook.ts";

/** An event on its way to an endpoint (docs/webhooks, "Webhooks"). */

export const deliveryForm = form("WebhookDelivery", () =>
  object({
    id: text,
    webhook_id: text,
    event: oneOf(EVENT_TYPES),
    status: oneOf(DELIVERY_STATUSES),
    attempts: count,
    response_code: orNull(integer),
    next_attempt_at: orNull(time),
    created_at: time,
  }),
);

export const deliveryResource = (delivery: WebhookDelivery): Wire<typeof deliveryForm> => ({
  id: delivery.id,
  webhook_id: delivery.webhookId,
  event: delivery.event,
  status: delivery.status,
  attempts: delivery.attempts,
  response_code: delivery.responseCode,
  next_attempt_at: isoTimeOrNull(delivery.nextAttemptAt),
  created_at: isoTime(delivery.createdAt),
});

const deliveryRecordForm = form("WebhookDeliveryRecord", () =>
  object({
    ...deliveryForm().properties,
    event_id: text,
    warrant_id: orNull(text),
    response_start: orNull(text),
    duration_ms: orNull(integer),
  }),
);

/** A delivery in the log, with its event and the result of its last attempt. */
export const deliveryRecord = (delivery: WebhookDelivery): Wire<typeof deliveryRecordForm> => ({
  ...deliveryResource(delivery),
  event_id: delivery.eventId,
  warrant_id: delivery.warrantId,
  response_start: delivery.responseStart,
  duration_ms: delivery.durationMs,
});

export const deliveryJobForm = form("DeliveryJob", () =>
  object({
    object: is("job"),
    attempted: count,
    delivered: count,
    failed: count,
    exhausted: count,
    pending: count,
  }),
);

/**
 * What a run of the deliveries did: the attempts that it made, by their outcome, and how many deliveries
 * still wait.
 */
export const deliveryJobResource = (
  done: Omit<Wire<typeof deliveryJobForm>, "object">,
): Wire<typeof deliveryJobForm> => ({
  object: "job",
  attempted: done.attempted,
  delivered: done.delivered,
  failed: done.failed,
  exhausted: done.exhausted,
  pending: done.pending,
});
