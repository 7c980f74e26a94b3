import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import { MODES, type Mode } from "../../core/roles.ts";
import { checkSourceUrl } from "../../core/source-url.ts";
import { EVENT_TYPES, type EventType } from "../../core/warrant.ts";
import { newWebhookSecret, type WebhookEndpoint } from "../../core/webhook.ts";
import type { Context } from "../context.ts";
import { deliveryRecord, deliveryResource, listResource, webhookResource } from "../resources.ts";
import { recordingAct } from "./acts.ts";
import {
  type Authority,
  administer,
  reaches,
  readableScope,
  refuseAuthority,
  refuseOrganisation,
} from "./authority.ts";
import { refuseUnlisted } from "./fields.ts";

/** Endpoints of an organisation that are not disabled, in one mode: each event is sent to all of them. */
const WEBHOOKS_MAX = 100;
const DELIVERIES_MAX = 50;

export type WebhookInput = {
  readonly organisation_id: string;
  readonly mode: Mode;
  readonly url: string;
  /** Which events it hears of; without it, or empty, all. */
  readonly events?: readonly string[];
};

export type NewWebhook = ReturnType<typeof webhookResource> & {
  /** Shown this once: what is kept of it can be opened only by the instance, to sign. */
  readonly secret: string;
};

/** Creates an endpoint, which hears of what happens from then on. */
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
  if (ctx.store.reader.webhooks.list(scope).filter(({ disabled }) => !disabled).length >= WEBHOOKS_MAX)
    return refuseField(
      "organisation_id",
      `has ${WEBHOOKS_MAX} endpoints, the most there can be; disable one`,
    );
  const id = ctx.newId("webhook");
  const secret = newWebhookSecret(ctx.randomByte);
  const webhook: WebhookEndpoint = {
    ...scope,
    id,
    url: input.url,
    events,
    sealedSecret: ctx.vault.seal(secret, id),
    disabled: false,
    createdAt: ctx.now(),
  };
  const record = recordingAct(ctx, authority, "webhook.created");
  return administer(ctx, authority, "admin", {
    scope,
    needs: { organisation: true },
    decide: (snapshot) => {
      const unknown = refuseOrganisation(authority, snapshot.organisation);
      if (unknown) return { answer: unknown };
      const resource = webhookResource(webhook);
      return {
        answer: { ...resource, secret },
        change: {
          rows: [{ kind: "webhook", row: webhook }, record(webhook.organisationId, id, null, resource)],
        },
      };
    },
  });
}

/** The events that an endpoint asks for, each once. */
function parseEvents(names: readonly string[]): readonly EventType[] | Refusal {
  const unknown = names.filter((name) => !EVENT_TYPES.some((event) => event === name));
  if (unknown.length > 0) {
    const quoted = unknown.map((name) => JSON.stringify(name)).join(", ");
    return refuseField("events", `must be among ${EVENT_TYPES.join(", ")}; not so ${quoted}`);
  }
  return EVENT_TYPES.filter((event) => names.includes(event));
}

/** Disables an endpoint, for good: it gets nothing more, also of what is on its way. One that is disabled already stays so. */
export async function disableWebhook(
  ctx: Context,
  authority: Authority,
  input: { readonly webhook_id: string },
): Promise<ReturnType<typeof webhookResource> | Refusal> {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const known = findWebhook(ctx, authority, input.webhook_id);
  if (isRefusal(known)) return known;
  const record = recordingAct(ctx, authority, "webhook.disabled");
  return administer(ctx, authority, "admin", {
    scope: known,
    needs: { webhookId: known.id },
    decide: ({ webhook }) => {
      if (!webhook) return { answer: webhookNotFound(known.id) };
      const before = webhookResource(webhook);
      if (webhook.disabled) return { answer: before };
      const row = { ...webhook, disabled: true };
      const after = webhookResource(row);
      return {
        answer: after,
        change: {
          rows: [{ kind: "webhook", row }, record(webhook.organisationId, webhook.id, before, after)],
        },
      };
    },
  });
}

/** An organisation's endpoints in one mode, and the most recent deliveries to all of them (interface.md, Console read-backs). */
export async function listWebhooks(
  ctx: Context,
  authority: Authority,
  input: { readonly organisation_id: string; readonly mode: Mode },
) {
  const scope = readableScope(ctx, authority, "admin", input);
  if (isRefusal(scope)) return scope;
  const { deliveries, webhooks } = ctx.store.reader;
  return listResource(webhooks.list(scope).map(webhookResource), {
    deliveries: deliveries.list(scope, DELIVERIES_MAX).map(deliveryResource),
  });
}

/** The most recent deliveries to an endpoint, newest first, with how the last attempt of each went. */
export async function listDeliveries(
  ctx: Context,
  authority: Authority,
  input: { readonly webhook_id: string },
) {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const webhook = findWebhook(ctx, authority, input.webhook_id);
  if (isRefusal(webhook)) return webhook;
  const { deliveries } = ctx.store.reader;
  return listResource(deliveries.list(webhook, DELIVERIES_MAX, webhook.id).map(deliveryRecord));
}

/** The endpoint of an id, where the authority reaches it. */
export function findWebhook(ctx: Context, authority: Authority, id: string): WebhookEndpoint | Refusal {
  const webhook = ctx.store.reader.webhooks.get(id);
  return webhook && reaches(authority, webhook) ? webhook : webhookNotFound(id);
}

export const webhookNotFound = (id: string): Refusal =>
  refuse("webhook_not_found", `There is no webhook endpoint ${id}.`);
