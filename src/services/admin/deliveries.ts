import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import { isoTime, parseTime } from "../../core/time.ts";
import { newDelivery, type WebhookDelivery, type WebhookEndpoint } from "../../core/webhook.ts";
import { deliveryRecord } from "../../resources/delivery.ts";
import type { Put } from "../../store/change.ts";
import type { Reader } from "../../store/reader.ts";
import type { Audited, Entry } from "../audited.ts";
import type { Context } from "../context.ts";
import { type Authority, administer, reaches, refuseAuthority } from "./authority.ts";
import { findWebhook, webhookNotFound } from "./webhooks.ts";

/**
 * New deliveries that an administrator asks for. A delivery that has ended is never tried again, so its event
 * gets a new one.
 */

type DeliveryRecord = ReturnType<typeof deliveryRecord>;

/** How many deliveries one commit makes. */
const STEP = 500;

/** Sends the event of an earlier delivery to the same endpoint again, whether or not it was delivered. */
export async function redeliver(
  ctx: Context,
  authority: Authority,
  input: { readonly delivery_id: string },
): Promise<DeliveryRecord | Refusal> {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const found = await ctx.store.read((reader) => findDelivery(reader, authority, input.delivery_id));
  if (isRefusal(found)) return found;
  const { earlier, webhook } = found;
  return addOne(ctx, authority, webhook, earlier, { action: "delivery.redelivered", subject: earlier.id });
}

/** The delivery with this id, and its endpoint, where the authority may see both. */
async function findDelivery(
  reader: Reader,
  authority: Authority,
  id: string,
): Promise<{ readonly earlier: WebhookDelivery; readonly webhook: WebhookEndpoint } | Refusal> {
  const earlier = await reader.deliveries.get(id);
  if (!earlier || !reaches(authority, earlier))
    return refuse("delivery_not_found", `There is no delivery ${id}.`);
  const webhook = await findWebhook(reader, authority, earlier.webhookId);
  return isRefusal(webhook) ? webhook : { earlier, webhook };
}

/** Sends an example event. It has the form of a real one, and says that it is an example. */
export async function sendExample(
  ctx: Context,
  authority: Authority,
  input: { readonly webhook_id: string },
): Promise<DeliveryRecord | Refusal> {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const webhook = await ctx.store.read((reader) => findWebhook(reader, authority, input.webhook_id));
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
 * Sends the events of exhausted deliveries again, after an endpoint was down: those since the given time that
 * were never delivered later, oldest first. Two runs at once may send an event twice; receivers recognise it
 * by its id.
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
  const webhook = await ctx.store.read((reader) => findWebhook(reader, authority, input.webhook_id));
  if (isRefusal(webhook)) return webhook;
  const recovery = { object: "webhook_recovery", webhook_id: webhook.id, since: isoTime(since) } as const;
  const sent = new Set<string>();
  for (;;) {
    const found = await ctx.store.read(({ deliveries }) =>
      deliveries.exhaustedSince(webhook.id, since, STEP),
    );
    const exhausted = found.filter(({ id }) => !sent.has(id));
    const entry = { action: "webhook.recovered", subject: webhook.id } as const;
    const after = { since: recovery.since, deliveries: exhausted.length };
    const added = await addDeliveries(ctx, authority, webhook, exhausted, entry, () => after);
    if (isRefusal(added)) return added;
    for (const { id } of exhausted) sent.add(id);
    if (exhausted.length < STEP) return { ...recovery, deliveries: sent.size };
  }
}

type Sent = Pick<WebhookDelivery, "event" | "eventId" | "warrantId" | "sequence">;
/** An audit entry, still without the deliveries that were made. */
type EntryHead = Pick<Entry, "action" | "subject">;

async function addOne(
  ctx: Context,
  authority: Authority,
  webhook: WebhookEndpoint,
  sent: Sent,
  entry: EntryHead,
): Promise<DeliveryRecord | Refusal> {
  const added = await addDeliveries(ctx, authority, webhook, [sent], entry, ([one = null]) => one);
  if (isRefusal(added)) return added;
  const [one] = added;
  if (!one) throw new Error("one delivery was asked for");
  return one;
}

/** Makes new deliveries, due at once. Refused where the endpoint is disabled. */
function addDeliveries(
  ctx: Context,
  authority: Authority,
  endpoint: WebhookEndpoint,
  sent: readonly Sent[],
  entry: EntryHead,
  after: (records: readonly DeliveryRecord[]) => object | null,
): Promise<readonly DeliveryRecord[] | Refusal> {
  const identified = sent.map((of) => ({ of, id: ctx.newId("delivery") }));
  return administer(ctx, authority, "admin", {
    scope: endpoint,
    needs: { webhook: endpoint.id },
    decide: ({ webhook }, now): Audited<readonly DeliveryRecord[]> => {
      if (!webhook) return { answer: webhookNotFound(endpoint.id) };
      if (webhook.disabled) {
        return { answer: refuseField("webhook_id", "is disabled: the endpoint gets nothing more") };
      }
      const added = identified.map(({ id, of: { event, eventId, warrantId, sequence } }) =>
        newDelivery(webhook, id, { event, eventId, warrantId, sequence, createdAt: now }),
      );
      const answer = added.map(deliveryRecord);
      return {
        answer,
        put: added.map((row): Put => ({ kind: "delivery", before: null, row })),
        entries: [{ ...entry, before: null, after: after(answer) }],
      };
    },
  });
}
