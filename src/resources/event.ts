import { Type } from "@sinclair/typebox";
import { sha256 } from "../core/canonical.ts";
import type { Check } from "../core/check.ts";
import { EVALUATOR_VERSION } from "../core/clauses/evaluator-version.ts";
import { form, idOf, is, object, oneOf, time, type Wire } from "../core/form.ts";
import { derivedId, timeOfId } from "../core/ids.ts";
import { BPS_WHOLE } from "../core/money.ts";
import { MODES, type Mode, SYSTEM } from "../core/roles.ts";
import { isoTime } from "../core/time.ts";
import { traceOf, tracePayloadForm } from "../core/trace.ts";
import { EVENT_TYPES, type EventType, type State, type Warrant } from "../core/warrant.ts";
import type { WebhookDelivery } from "../core/webhook.ts";
import { exampleWarrant } from "./warrant.ts";

/** The body of a webhook (docs/webhooks, "Body"), and an example for each event. */

export const eventForm = form("Event", () =>
  object({
    id: idOf("event"),
    object: is("event"),
    type: oneOf(EVENT_TYPES),
    mode: oneOf(MODES),
    created_at: time,
    data: tracePayloadForm(),
    example: Type.Optional(Type.Literal(true, { description: "Of an example, for which nothing happened." })),
  }),
);
type Event = Wire<typeof eventForm>;

/**
 * `data` is the trace payload that `payload_hash` covers. In an example event, which stands for nothing real,
 * it has `"example": true`.
 */
export function eventBody(
  { id, type }: { readonly id: string; readonly type: EventType },
  mode: Mode,
  recordedAt: number,
  payload: string,
  example = false,
): string {
  const event: Event = {
    id,
    object: "event",
    type,
    mode,
    created_at: isoTime(recordedAt),
    data: JSON.parse(payload) as Event["data"],
    ...(example && { example }),
  };
  return JSON.stringify(event);
}

/** The example move for each event. */
const MOVES = {
  "warrant.opened": { from: null, to: "held", version: 1, releasedBps: null },
  "warrant.verifying": { from: "held", to: "verifying", version: 2, releasedBps: null },
  "warrant.released": { from: "verifying", to: "released", version: 3, releasedBps: BPS_WHOLE },
  "warrant.partially_released": {
    from: "verifying",
    to: "partially_released",
    version: 3,
    releasedBps: BPS_WHOLE / 4,
  },
  "warrant.refunded": { from: "verifying", to: "refunded", version: 3, releasedBps: null },
} as const satisfies Readonly<
  Record<
    EventType,
    Pick<Warrant, "version" | "releasedBps"> & { readonly from: State | null; readonly to: State }
  >
>;

/** The check before a settlement. */
const checkOf = (warrantId: string, eventId: string, score: number, evaluatedAt: number): Check => ({
  id: derivedId("check", eventId, "example"),
  warrantId,
  sourceUrl: "https://example.com/deliverable.json",
  httpStatus: 200,
  bytes: 2,
  durationMs: 12,
  score,
  passed: score === BPS_WHOLE,
  reasonCodes: score === BPS_WHOLE ? [] : ["status_mismatch"],
  evidenceHash: sha256("{}"),
  details: [],
  outcome: score === BPS_WHOLE ? "release" : score > 0 ? "partial_release" : "refund",
  bandLabel: null,
  evaluatedAt,
  evaluatorVersion: EVALUATOR_VERSION,
  signedBy: null,
  capsuleHash: sha256("{}"),
});

/**
 * The body of an example event. It has the form of a real event, for a warrant that does not exist. It
 * depends only on the delivery, so every attempt sends the same bytes.
 */
export function exampleBody({ event, eventId, mode, organisationId }: WebhookDelivery): string {
  const { from, to, version, releasedBps } = MOVES[event];
  const now = timeOfId(eventId);
  const id = derivedId("warrant", eventId, "example");
  const opened = exampleWarrant({ id, organisationId, mode, openedAt: now });
  const warrant: Warrant = { ...opened, state: to, version, releasedBps };
  const { payload } = traceOf(
    { from, warrant, legs: null },
    from === "verifying"
      ? {
          actor: SYSTEM,
          eventId,
          recordedAt: now,
          check: checkOf(warrant.id, eventId, releasedBps ?? 0, now),
        }
      : { actor: { kind: "agent", id: derivedId("apiKey", eventId, "example") }, eventId, recordedAt: now },
  );
  return eventBody({ id: eventId, type: event }, mode, now, payload, true);
}
