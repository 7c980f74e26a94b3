import { Type } from "@sinclair/typebox";
import { arrayOf, boolean, form, object, oneOf, text, time, type Wire } from "../core/form.ts";
import { isoTime } from "../core/time.ts";
import { EVENT_TYPES } from "../core/warrant.ts";
import type { WebhookDelivery, WebhookEndpoint } from "../core/webhook.ts";
import { deliveryForm, deliveryResource } from "./delivery.ts";
import { readBackForm } from "./list.ts";

/** A webhook endpoint without its signing secret, which is shown only once, when the endpoint is created. */

const webhookForm = form("Webhook", () =>
  object({
    id: text,
    url: text,
    events: Type.Array(oneOf(EVENT_TYPES), { description: "Empty means all." }),
    disabled: boolean,
    created_at: time,
  }),
);

export const webhookResource = (webhook: WebhookEndpoint): Wire<typeof webhookForm> => ({
  id: webhook.id,
  url: webhook.url,
  events: webhook.events,
  disabled: webhook.disabled,
  created_at: isoTime(webhook.createdAt),
});

export const webhookListForm = form("WebhookList", () =>
  readBackForm(webhookForm(), { deliveries: arrayOf(deliveryForm()) }),
);

export const webhookListResource = (
  webhooks: readonly WebhookEndpoint[],
  deliveries: readonly WebhookDelivery[],
): Wire<typeof webhookListForm> => ({
  object: "list",
  data: webhooks.map(webhookResource),
  deliveries: deliveries.map(deliveryResource),
});
