import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import { MODES, type Mode } from "../../core/roles.ts";
import { checkSourceUrl } from "../../core/source-url.ts";
import { EVENT_TYPES, type EventType } from "../../core/warrant.ts";
import { newWebhookSecret, type WebhookEndpoint } from "../../core/webhook.ts";
import { deliveryRecord } from "../../resources/delivery.ts";
import { listResource } from "../../resources/list.ts";
import { webhookListResource, webhookResource } from "../../resources/webhook.ts";
import type { Reader } from "../../store/reader.ts";
import type { Audited } from "../audited.ts";
import type { Context } from "../context.ts";
import { refuseUnlisted } from "../fields.ts";
import { ofScope, type PageOfList, pageOfList } from "../page-of-list.ts";
import { type Authority, administer, reaches, readableScope, refuseAuthority } from "./authority.ts";

/**
 * How many enabled endpoints an organisation may have in one mode, since each event is sent to all of them.
 */
const WEBHOOKS_MAX = 100;
const DELIVERIES_MAX = 50;

export type WebhookInput = {
  readonly organisation_id: string;
  readonly mode: Mode;
  readonly url: string;
  /** The events to send to it. Without this field, or with an empty list, all events. */
  readonly events?: readonly string[];
};

type WebhookResource = ReturnType<typeof webhookResource>;

export type NewWebhook = WebhookResource & {
  /**
   * The signing secret, shown only here. The stored secret is encrypted, and only the instance can decrypt
   * it.
   */
  readonly secret: string;
};

/** Creates an endpoint. It gets the events that happen from then on. */
export async function createWebhook(
  ctx: Context,
  authority: Authority,
  input: WebhookInput,
): Promise<NewWebhook | Refusal> {
  const refused = refuseAuthority(authority, "admin") ?? refuseUnlisted("mode", input.mode, MODES);
  if (refused) return refused;
  const problem = checkSourceUrl(input.url);
  if (problem !== null) return refuseField("url", problem);
  const events = parseEvents(input.events ?? []);
  if (isRefusal(events)) return events;
  const scope = { organisationId: input.organisation_id, mode: input.mode };
  const id = ctx.newId("webhook");
  const secret = newWebhookSecret(ctx.randomByte);
  const encryptedSecret = ctx.vault.encrypt(secret, id);
  return administer(ctx, authority, "admin", {
    scope,
    needs: { webhooks: true },
    decide: ({ webhooks }, now): Audited<NewWebhook> => {
      if (webhooks.length >= WEBHOOKS_MAX) {
        return {
          answer: refuseField(
            "organisation_id",
            `has ${WEBHOOKS_MAX} endpoints, the most there can be; disable one`,
          ),
        };
      }
      const { url } = input;
      const row: WebhookEndpoint = {
        ...scope,
        id,
        url,
        events,
        encryptedSecret,
        disabled: false,
        createdAt: now,
      };
      const resource = webhookResource(row);
      return {
        answer: { ...resource, secret },
        put: [{ kind: "webhook", before: null, row }],
        entries: [{ action: "webhook.created", subject: id, before: null, after: resource }],
      };
    },
  });
}

/** The events that an endpoint asks for, each once. */
function parseEvents(names: readonly string[]): readonly EventType[] | Refusal {
  const unknown = names.filter((name) => !EVENT_TYPES.some((event) => event === name));
  if (unknown.length > 0) {
    const quoted = unknown.map((name) => JSON.stringify(name)).join(", ");
    return refuseField("events", `must be among ${EVENT_TYPES.join(", ")}, and ${quoted} is not`);
  }
  return EVENT_TYPES.filter((event) => names.includes(event));
}

/**
 * Disables an endpoint for ever. It gets no further attempt, not even of deliveries that are waiting. A
 * disabled endpoint stays as it is.
 */
export async function disableWebhook(
  ctx: Context,
  authority: Authority,
  input: { readonly webhook_id: string },
): Promise<WebhookResource | Refusal> {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const known = await ctx.store.read((reader) => findWebhook(reader, authority, input.webhook_id));
  if (isRefusal(known)) return known;
  return administer(ctx, authority, "admin", {
    scope: known,
    needs: { webhook: known.id },
    decide: ({ webhook }): Audited<WebhookResource> => {
      if (!webhook) return { answer: webhookNotFound(known.id) };
      const before = webhookResource(webhook);
      if (webhook.disabled) return { answer: before };
      const row = { ...webhook, disabled: true };
      const after = webhookResource(row);
      return {
        answer: after,
        put: [{ kind: "webhook", before: webhook, row }],
        entries: [{ action: "webhook.disabled", subject: webhook.id, before, after }],
      };
    },
  });
}

/** An organisation's endpoints in one mode, and the most recent deliveries to all of them. */
export async function listWebhooks(
  ctx: Context,
  authority: Authority,
  input: { readonly organisation_id: string; readonly mode: Mode } & PageOfList,
) {
  return ctx.store.read(async (reader) => {
    const scope = await readableScope(reader, authority, "admin", input);
    if (isRefusal(scope)) return scope;
    const page = await pageOfList(
      input,
      (part) => reader.webhooks.list(scope, part),
      async (id) => ofScope(scope, await reader.webhooks.get(id)),
    );
    if (isRefusal(page)) return page;
    const deliveries = await reader.deliveries.list(scope, DELIVERIES_MAX);
    return { ...webhookListResource(page.rows, deliveries), ...page.more };
  });
}

/** The most recent deliveries to an endpoint, newest first, each with the result of its last attempt. */
export async function listDeliveries(
  ctx: Context,
  authority: Authority,
  input: { readonly webhook_id: string },
) {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const webhook = await findWebhook(reader, authority, input.webhook_id);
    if (isRefusal(webhook)) return webhook;
    const deliveries = await reader.deliveries.list(webhook, DELIVERIES_MAX, webhook.id);
    return listResource(deliveries.map(deliveryRecord));
  });
}

/** The endpoint with this id, where the authority may see it. */
export async function findWebhook(
  reader: Reader,
  authority: Authority,
  id: string,
): Promise<WebhookEndpoint | Refusal> {
  const webhook = await reader.webhooks.get(id);
  return webhook && reaches(authority, webhook) ? webhook : webhookNotFound(id);
}

export const webhookNotFound = (id: string): Refusal =>
  refuse("webhook_not_found", `There is no webhook endpoint ${id}.`);
