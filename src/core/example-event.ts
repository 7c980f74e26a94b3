import { hashJson, sha256 } from "./canonical.ts";
import type { Check } from "./check.ts";
import { derivedId, timeOfId } from "./ids.ts";
import { BPS_WHOLE } from "./money.ts";
import { BUILT_IN_RULES_HASH } from "./policy.ts";
import { SYSTEM } from "./roles.ts";
import { HOUR_MS } from "./time.ts";
import { traceOf } from "./trace.ts";
import type { EventType, State, Warrant } from "./warrant.ts";
import { eventBody, type WebhookDelivery } from "./webhook.ts";

/** The move of the example's warrant, for each event. */
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

/** What the check before a settlement adds. */
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
});

const SPEC = { clauses: [{ kind: "http.status", equals: 200 }] } as const;

/**
 * The body of an example. It has the form of a real event, about a warrant that does not exist. It is computed from the
 * delivery alone, so every attempt sends the same bytes.
 */
export function exampleBody({ event, eventId, mode, organisationId }: WebhookDelivery): string {
  const { from, to, version, releasedBps } = MOVES[event];
  const now = timeOfId(eventId);
  const warrant: Warrant = {
    id: derivedId("warrant", eventId, "example"),
    organisationId,
    mode,
    state: to,
    version,
    amount: 8_400_000n,
    asset: "USDC",
    releasedBps,
    payee: "example-payee",
    spec: SPEC,
    specHash: hashJson(SPEC),
    agentId: null,
    sessionId: null,
    verifierId: null,
    policyId: null,
    policyVersion: null,
    rulesHash: BUILT_IN_RULES_HASH,
    traceHead: null,
    deadline: now + HOUR_MS,
    openedAt: now,
    verifyingSince: null,
    settledAt: version === 3 ? now : null,
  };
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
