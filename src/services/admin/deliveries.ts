import type { AuditAction } from "../../core/audit-entry.ts";
import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import { isoTime, parseTime } from "../../core/time.ts";
import { newDelivery, type WebhookDelivery, type WebhookEndpoint } from "../../core/webhook.ts";
import type { Row } from "../../store/store.ts";
import type { Context } from "../context.ts";
import { deliveryRecord } from "../resources.ts";
import { recordingAct } from "./acts.ts";
import { type Authority, administer, reaches, refuseAuthority } from "./authority.ts";
import { findWebhook, webhookNotFound } from "./webhooks.ts";

/** New deliveries at an administrator's wish. One that has ended is never tried again: a new one carries its event. */

type DeliveryRecord = ReturnType<typeof deliveryRecord>;

/** How many deliveries one commit makes. */
const STEP = 500;

/** Sends an event once more to the endpoint that an earlier delivery was for, however that one went. */
export async function redeliver(
  ctx: Context,
  authority: Authority,
  input: { readonly delivery_id: string },
): Promise<DeliveryRecord | Refusal> {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const earlier = ctx.store.reader.deliveries.get(input.delivery_id);
  if (!earlier || !reaches(authority, earlier))
    return refuse("delivery_not_found", `There is no delivery ${input.delivery_id}.`);
  const webhook = findWebhook(ctx, authority, earlier.webhookId);
  if (isRefusal(webhook)) return webhook;
  return addOne(ctx, authority, webhook, earlier, { action: "delivery.redelivered", subject: earlier.id });
}

/** Sends an event of the right form for which nothing happened; the body says so. */
export async function sendExample(
  ctx: Context,
  authority: Authority,
  input: { readonly webhook_id: string },
): Promise<DeliveryRecord | Refusal> {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const webhook = findWebhook(ctx, authority, input.webhook_id);
  if (isRefusal(webhook)) return webhook;
  const [event = "warrant.released"] = webhook.events;
  const example = { event, eventId: ctx.newId("event"), warrantId: null, sequence: null };
  return addOne(ctx, authority, webhook, example, { action: "webhook.example_sent", subject: webhook.id });
}

export type Recovery = {
  readonly object: "webhook_recovery";
  readonly webhook_id: string;
  readonly since: string;
  /** How many new deliveries were made. */
  readonly deliveries: number;
};

/**
 * Sends once more what was exhausted since a time and never arrived after all, the oldest first: for an endpoint that was
 * down. Two at once may both send; receivers know an event by its id.
 */
export async function recoverWebhook(
  ctx: Context,
  authority: Authority,
  input: { readonly webhook_id: string; readonly since: string },
): Promise<Recovery | Refusal> {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const since = parseTime(input.since);
  if (since === null) return refuseField("since", "must be an RFC 3339 time with a zone");
  const webhook = findWebhook(ctx, authority, input.webhook_id);
  if (isRefusal(webhook)) return webhook;
  const recovery = { object: "webhook_recovery", webhook_id: webhook.id, since: isoTime(since) } as const;
  const sent = new Set<string>();
  for (;;) {
    const exhausted = ctx.store.reader.deliveries
      .exhaustedSince(webhook.id, since, STEP)
      .filter(({ id }) => !sent.has(id));
    const act = { action: "webhook.recovered", subject: webhook.id } as const;
    const after = { since: recovery.since, deliveries: exhausted.length };
    const added = await addDeliveries(ctx, authority, webhook, exhausted, act, () => after);
    if (isRefusal(added)) return added;
    for (const { id } of exhausted) sent.add(id);
    if (exhausted.length < STEP) return { ...recovery, deliveries: sent.size };
  }
}

type Sent = Pick<WebhookDelivery, "event" | "eventId" | "warrantId" | "sequence">;
type Act = { readonly action: AuditAction; readonly subject: string };

async function addOne(
  ctx: Context,
  authority: Authority,
  webhook: WebhookEndpoint,
  sent: Sent,
  act: Act,
): Promise<DeliveryRecord | Refusal> {
  const added = await addDeliveries(ctx, authority, webhook, [sent], act, ([one = null]) => one);
  if (isRefusal(added)) return added;
  const [one] = added;
  if (!one) throw new Error("one delivery was asked for");
  return one;
}

/** New deliveries, due at once, and the act in the audit log. Refused where the endpoint is disabled. */
function addDeliveries(
  ctx: Context,
  authority: Authority,
  endpoint: WebhookEndpoint,
  sent: readonly Sent[],
  { action, subject }: Act,
  after: (records: readonly DeliveryRecord[]) => object | null,
): Promise<readonly DeliveryRecord[] | Refusal> {
  const createdAt = ctx.now();
  const added = sent.map(({ event, eventId, warrantId, sequence }) =>
    newDelivery(endpoint, ctx.newId("delivery"), { event, eventId, warrantId, sequence, createdAt }),
  );
  const records = added.map(deliveryRecord);
  const record = recordingAct(ctx, authority, action);
  return administer<readonly DeliveryRecord[]>(ctx, authority, "admin", {
    scope: endpoint,
    needs: { webhookId: endpoint.id },
    decide: ({ webhook }) => {
      if (!webhook) return { answer: webhookNotFound(endpoint.id) };
      if (webhook.disabled) {
        return { answer: refuseField("webhook_id", "is disabled: the endpoint gets nothing more") };
      }
      const rows: Row[] = added.map((row) => ({ kind: "delivery", row }));
      return {
        answer: records,
        change: { rows: [...rows, record(webhook.organisationId, subject, null, after(records))] },
      };
    },
  });
}
