import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import { ACCESS, type Caller, refuseAccess } from "../../core/roles.ts";
import type { EventType } from "../../core/warrant.ts";
import {
  type DeliveryStatus,
  deliveryHeaders,
  type WebhookDelivery,
  type WebhookEndpoint,
} from "../../core/webhook.ts";
import type { Reader } from "../../store/reader.ts";
import { findWebhook } from "../admin/webhooks.ts";
import type { Context } from "../context.ts";
import { firstOf } from "../page-of-list.ts";
import { bodyOf } from "../webhooks/attempt.ts";
import { PAGE_SIZE } from "./paging.ts";

/** Endpoints and deliveries for people: paged, filtered, and each delivery with its request. */

export type DeliveriesAsked = {
  readonly webhookId: string | null;
  readonly status: DeliveryStatus | null;
  readonly event: EventType | null;
  /** The id of the delivery after which the page begins. */
  readonly olderThan: string | null;
};

export type DeliveriesPage = {
  readonly deliveries: readonly WebhookDelivery[];
  readonly endpoints: readonly WebhookEndpoint[];
  /** The delivery after which the next page begins; null at the end. */
  readonly next: string | null;
};

/** Filters read deliveries this many at a time, and no more than the second number for a page, so that no page waits for all of them. */
const STEP = 250;
const LOOKED_MAX = 2_000;

/**
 * A page of the endpoints of the caller's organisation and mode, oldest first, and where the next one begins; null at the end.
 *
 * @param after the last one of the page before; null for the first page
 */
export async function readEndpoints(ctx: Context, caller: Caller, after: string | null, limit = PAGE_SIZE) {
  const refused = refuseAccess(caller, ACCESS.administer);
  if (refused) return refused;
  return ctx.store.read(async ({ webhooks }) => {
    const { rows, more } = firstOf(
      await webhooks.list(caller, { after, limit: limit + 1 }),
      limit,
      ({ id }) => id,
    );
    return { endpoints: rows, next: more.next_cursor };
  });
}

/** The endpoints to which these went. */
export async function endpointsOf(
  reader: Reader,
  deliveries: readonly WebhookDelivery[],
): Promise<readonly WebhookEndpoint[]> {
  const found: WebhookEndpoint[] = [];
  for (const id of new Set(deliveries.map(({ webhookId }) => webhookId))) {
    const webhook = await reader.webhooks.get(id);
    if (webhook) found.push(webhook);
  }
  return found;
}

export async function readEndpoint(
  ctx: Context,
  caller: Caller,
  id: string,
): Promise<WebhookEndpoint | Refusal> {
  const refused = refuseAccess(caller, ACCESS.administer);
  return refused ?? ctx.store.read((reader) => findWebhook(reader, caller, id));
}

/** A page of deliveries, newest first. */
export async function readDeliveries(
  ctx: Context,
  caller: Caller,
  asked: DeliveriesAsked,
): Promise<DeliveriesPage | Refusal> {
  const refused = refuseAccess(caller, ACCESS.administer);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const page = await pageOf(reader, caller, asked);
    return { ...page, endpoints: await endpointsOf(reader, page.deliveries) };
  });
}

async function pageOf(
  reader: Reader,
  caller: Caller,
  asked: DeliveriesAsked,
): Promise<Omit<DeliveriesPage, "endpoints">> {
  const { webhookId, status, event } = asked;
  const isWanted = (one: WebhookDelivery): boolean =>
    (webhookId === null || one.webhookId === webhookId) &&
    (status === null || one.status === status) &&
    (event === null || one.event === event);
  const isFiltered = webhookId !== null || status !== null || event !== null;
  const step = isFiltered ? STEP : PAGE_SIZE + 1;
  const found: WebhookDelivery[] = [];
  let last = asked.olderThan === null ? null : await ownDelivery(reader, caller, asked.olderThan);
  for (let looked = 0; looked < LOOKED_MAX; looked += step) {
    const rows = await reader.deliveries.olderThan(caller, last, step);
    for (const row of rows) {
      // One more than the page shows that another page follows.
      if (found.length === PAGE_SIZE && isWanted(row))
        return { deliveries: found, next: found.at(-1)?.id ?? null };
      if (isWanted(row)) found.push(row);
      last = row;
    }
    if (rows.length < step) return { deliveries: found, next: null };
  }
  return { deliveries: found, next: last?.id ?? null };
}

async function ownDelivery(reader: Reader, caller: Caller, id: string): Promise<WebhookDelivery | null> {
  const delivery = await reader.deliveries.get(id);
  const isOwn = delivery?.organisationId === caller.organisationId && delivery.mode === caller.mode;
  return isOwn ? delivery : null;
}

/** What is sent, but for the signatures, which each attempt makes anew. */
export type DeliveryRequest = {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

export type DeliveryDetail = {
  readonly delivery: WebhookDelivery;
  readonly webhook: WebhookEndpoint;
  readonly request: DeliveryRequest;
};

export async function readDelivery(
  ctx: Context,
  caller: Caller,
  id: string,
): Promise<DeliveryDetail | Refusal> {
  const refused = refuseAccess(caller, ACCESS.administer);
  if (refused) return refused;
  const found = await ctx.store.read(async (reader) => {
    const delivery = await ownDelivery(reader, caller, id);
    if (!delivery) return refuse("delivery_not_found", `There is no delivery ${id}.`);
    const webhook = await findWebhook(reader, caller, delivery.webhookId);
    return isRefusal(webhook) ? webhook : { delivery, webhook };
  });
  if (isRefusal(found)) return found;
  const { delivery } = found;
  return {
    ...found,
    request: { headers: deliveryHeaders(delivery), body: await bodyOf(ctx, delivery) },
  };
}
