import { createHmac } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { derivedId } from "./ids.ts";
import type { Mode } from "./roles.ts";
import { SECOND_MS } from "./time.ts";
import type { TraceEntry } from "./trace.ts";
import type { EventType } from "./warrant.ts";

/** A URL that an organisation's events are sent to. */
export type WebhookEndpoint = {
  readonly id: string;
  readonly organisationId: string;
  readonly mode: Mode;
  readonly url: string;
  /** Empty means all. */
  readonly events: readonly EventType[];
  /** The signing secret, encrypted with the instance's master key. */
  readonly encryptedSecret: string;
  readonly disabled: boolean;
  readonly createdAt: number;
};

/** A `failed` delivery will be tried again, an `exhausted` one will not. */
export const DELIVERY_STATUSES = ["pending", "delivered", "failed", "exhausted"] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];
/** A delivery that has one of these is never tried again. */
export const ENDED_DELIVERY_STATUSES = [
  "delivered",
  "exhausted",
] as const satisfies readonly DeliveryStatus[];

/** One event on its way to one endpoint. */
export type WebhookDelivery = {
  readonly id: string;
  readonly webhookId: string;
  readonly organisationId: string;
  readonly mode: Mode;
  readonly event: EventType;
  readonly eventId: string;
  /**
   * The trace entry that the body carries: a warrant and a sequence. Both are null in an example event, which
   * belongs to no warrant.
   */
  readonly warrantId: string | null;
  readonly sequence: number | null;
  readonly status: DeliveryStatus;
  /** How many attempts were claimed so far. */
  readonly attempts: number;
  /** The status of the last attempt's response; null where no response came. */
  readonly responseCode: number | null;
  /**
   * The first kilobyte of the response as text. Where no response came, the reason, such as `source_timeout`.
   */
  readonly responseStart: string | null;
  readonly durationMs: number | null;
  /** When the attempt that is under way must have ended; null where none is under way. */
  readonly claimedUntil: number | null;
  /** When the next attempt is due; null while one is under way, and where no more will follow. */
  readonly nextAttemptAt: number | null;
  readonly createdAt: number;
};

export const ATTEMPT_TIMEOUT_MS = 10 * SECOND_MS;
/** Waits between the four attempts (docs/webhooks, "Attempts"). */
const WAITS_MS = [SECOND_MS, 5 * SECOND_MS, 25 * SECOND_MS] as const;
export const WAIT_MS_MAX = Math.max(...WAITS_MS);
export const DELIVERY_ATTEMPTS_MAX = WAITS_MS.length + 1;
/** An attempt that has not ended after this time was cut off: no attempt takes so long. */
export const CLAIM_MS = 3 * ATTEMPT_TIMEOUT_MS;

export const listensTo = (endpoint: WebhookEndpoint, event: EventType): boolean =>
  !endpoint.disabled && (endpoint.events.length === 0 || endpoint.events.includes(event));

/** The deliveries of a trace entry: one for each endpoint that listens. Their ids are computed from the event's id. */
export function deliveriesOf(
  endpoints: readonly WebhookEndpoint[],
  entry: Pick<TraceEntry, "warrantId" | "sequence" | "event">,
  now: number,
): readonly WebhookDelivery[] {
  const { event } = entry;
  if (event === null) return [];
  return endpoints
    .filter((endpoint) => listensTo(endpoint, event.type))
    .map((endpoint) =>
      newDelivery(endpoint, derivedId("delivery", event.id, endpoint.id), {
        event: event.type,
        eventId: event.id,
        warrantId: entry.warrantId,
        sequence: entry.sequence,
        createdAt: now,
      }),
    );
}

/** A delivery without any attempt so far. It is due at once. */
export const newDelivery = (
  endpoint: WebhookEndpoint,
  id: string,
  of: Pick<WebhookDelivery, "event" | "eventId" | "warrantId" | "sequence" | "createdAt">,
): WebhookDelivery => ({
  ...of,
  id,
  webhookId: endpoint.id,
  organisationId: endpoint.organisationId,
  mode: endpoint.mode,
  status: "pending",
  attempts: 0,
  responseCode: null,
  responseStart: null,
  durationMs: null,
  claimedUntil: null,
  nextAttemptAt: of.createdAt,
});

/** The delivery with its next attempt claimed, so that nobody else makes it; null where none is due. */
export function claimAttempt(delivery: WebhookDelivery, now: number): WebhookDelivery | null {
  if (delivery.nextAttemptAt === null || delivery.nextAttemptAt > now) return null;
  return {
    ...delivery,
    attempts: delivery.attempts + 1,
    claimedUntil: now + CLAIM_MS,
    nextAttemptAt: null,
  };
}

/** How an attempt ended. `code` is null where no response came. */
export type AttemptResult = {
  readonly code: number | null;
  /** The first kilobyte of the response as text. Where no response came, the reason. */
  readonly responseStart: string | null;
  readonly durationMs: number | null;
};

/** An attempt that a crash cut off: whether it arrived is not known, so it is tried again. */
export const CUT_OFF: AttemptResult = { code: null, responseStart: null, durationMs: null };

/** An attempt in which nothing was sent, for a fault on our side. */
export const NOT_SENT: AttemptResult = { code: null, responseStart: "not_sent", durationMs: null };

/**
 * The delivery after its attempt, which is under way: 2xx is success; after the fourth failure it is exhausted and never tried
 * again.
 */
export function endAttempt(delivery: WebhookDelivery, result: AttemptResult, now: number): WebhookDelivery {
  const { code, responseStart, durationMs } = result;
  const delivered = code !== null && code >= 200 && code <= 299;
  const wait = delivered ? undefined : WAITS_MS[delivery.attempts - 1];
  return {
    ...delivery,
    status: delivered ? "delivered" : wait === undefined ? "exhausted" : "failed",
    responseCode: code,
    responseStart,
    durationMs,
    claimedUntil: null,
    nextAttemptAt: wait === undefined ? null : now + wait,
  };
}

/**
 * The delivery after an attempt that could not be made, because the endpoint's secret cannot be decrypted. No receiver has
 * failed, so the attempt does not count. The delivery is due again until the key is back or the endpoint is disabled.
 */
export const returnAttempt = (delivery: WebhookDelivery, now: number): WebhookDelivery => ({
  ...delivery,
  attempts: delivery.attempts - 1,
  responseCode: null,
  responseStart: NOT_SENT.responseStart,
  durationMs: null,
  claimedUntil: null,
  nextAttemptAt: now + WAIT_MS_MAX,
});

/** The delivery after its endpoint was disabled: it is exhausted, and gets no further attempt. */
export const giveUp = (delivery: WebhookDelivery): WebhookDelivery => ({
  ...delivery,
  status: "exhausted",
  nextAttemptAt: null,
});

/**
 * The delivery put back on its schedule; null where it needs no change. Two cases need one. An attempt that
 * should have ended was cut off. And a time further ahead than any claim or wait was written before the clock
 * was set back.
 */
export function reschedule(delivery: WebhookDelivery, now: number): WebhookDelivery | null {
  const { claimedUntil, nextAttemptAt } = delivery;
  if (claimedUntil !== null && (claimedUntil <= now || claimedUntil > now + CLAIM_MS))
    return endAttempt(delivery, CUT_OFF, now);
  return nextAttemptAt !== null && nextAttemptAt > now + WAIT_MS_MAX
    ? { ...delivery, nextAttemptAt: now }
    : null;
}

const SECRET_PREFIX = "whsec_";
const SECRET_BYTES = 32;

/** A new signing secret. `randomByte` is a cryptographic source of uniform bytes. */
export const newWebhookSecret = (randomByte: () => number): string =>
  SECRET_PREFIX + Buffer.from(Array.from({ length: SECRET_BYTES }, randomByte)).toString("base64");

/** `Service-Signature`: HMAC-SHA256 of `<seconds>.<body>`, keyed with the whole secret string as UTF-8. */
function serviceSignature(secret: string, seconds: number, body: string): string {
  const v1 = createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex");
  return `t=${seconds},v1=${v1}`;
}

/** The headers of a delivery that are the same however it is signed. */
export const deliveryHeaders = ({ event, id, attempts, eventId }: WebhookDelivery) => ({
  "Content-Type": "application/json",
  "Service-Event": event,
  "Service-Delivery": id,
  "Service-Attempt": String(attempts),
  "webhook-id": eventId,
});

/** The headers of an attempt: our own, and those of Standard Webhooks. Each attempt is signed anew. */
export function attemptHeaders(
  delivery: WebhookDelivery,
  secret: string,
  body: string,
  now: number,
): Readonly<Record<string, string>> {
  const seconds = Math.floor(now / SECOND_MS);
  const standardSignature = new Webhook(secret).sign(delivery.eventId, new Date(seconds * SECOND_MS), body);
  return {
    ...deliveryHeaders(delivery),
    "Service-Signature": serviceSignature(secret, seconds, body),
    "webhook-timestamp": String(seconds),
    "webhook-signature": standardSignature,
  };
}
