import { type TSchema, Type } from "@sinclair/typebox";
import { EVENT_TYPES } from "../core/warrant.ts";
import { DELIVERY_STATUSES } from "../core/webhook.ts";

/** The forms of webhook endpoints and deliveries, for the API's description. */

const orNull = (schema: TSchema) => Type.Union([schema, Type.Null()]);
const oneOf = (values: readonly string[]) => Type.Union(values.map((value) => Type.Literal(value)));
const text = Type.String();
const time = Type.String({ format: "date-time" });
const integer = Type.Integer();
const count = Type.Integer({ minimum: 0 });

const webhook = Type.Object({
  id: text,
  url: text,
  events: Type.Array(oneOf(EVENT_TYPES), { description: "Empty means all." }),
  disabled: Type.Boolean(),
  created_at: time,
});
const delivery = Type.Object({
  id: text,
  webhook_id: text,
  event: oneOf(EVENT_TYPES),
  status: oneOf(DELIVERY_STATUSES),
  attempts: count,
  response_code: orNull(integer),
  next_attempt_at: orNull(time),
  created_at: time,
});

/** Named models, as `components.schemas` has them. */
export const webhookModels = {
  Webhook: webhook,
  WebhookDelivery: delivery,
  WebhookList: Type.Object({
    object: Type.Literal("list"),
    data: Type.Array(webhook),
    deliveries: Type.Array(delivery),
  }),
  DeliveryJob: Type.Object({
    object: Type.Literal("job"),
    attempted: count,
    delivered: count,
    failed: count,
    exhausted: count,
    pending: count,
  }),
} satisfies Record<string, TSchema>;
