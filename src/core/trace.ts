import { Type } from "@sinclair/typebox";
import { canonicalJson, hashJson, sha256 } from "./canonical.ts";
import { REASON_CODES } from "./clauses/reason-codes.ts";
import {
  amount,
  anyObject,
  arrayOf,
  hash,
  integer,
  object,
  oneOf,
  orNull,
  score,
  share,
  text,
  time,
  type Wire,
} from "./form.ts";
import { ACTOR_KINDS, type Actor, MODES } from "./roles.ts";
import { isoTime } from "./time.ts";
import { type EventType, eventOf, STATES, type State, type Transition, type Warrant } from "./warrant.ts";

export const actorForm = () => object({ kind: oneOf(ACTOR_KINDS), id: orNull(text) });

/** What a check adds to the payload of the outcome that followed it. */
const checkedForm = () =>
  object({
    check_id: text,
    score,
    reason_codes: arrayOf(oneOf(REASON_CODES)),
    evidence_hash: hash,
    check_hash: hash,
  });
export type CheckedPayload = Wire<typeof checkedForm>;

/** What a trace entry hashes, a webhook's body carries and a receipt shows. It stands here, not in `resources`: hashes depend on it. */
export const tracePayloadForm = () =>
  object({
    warrant_id: text,
    mode: oneOf(MODES),
    from: orNull(oneOf(STATES)),
    to: oneOf(STATES),
    version: Type.Integer({ minimum: 1 }),
    actor: actorForm(),
    recorded_at: time,
    amount,
    asset: text,
    payee: text,
    released_bps: share,
    spec_hash: hash,
    agent_id: orNull(text),
    policy_id: orNull(text),
    policy_version: orNull(integer),
    rules_hash: hash,
    schema_hashes: Type.Optional(anyObject<SchemaHashes>("At open: the hash of each named schema.", hash)),
    ...Type.Partial(checkedForm()).properties,
  });

/** The hash of each named schema, by its name. */
type SchemaHashes = Readonly<Record<string, string>>;

/**
 * One link of a warrant's chain (interface.md, Trace entry; decisions.md, Trace, log, receipts). The entries that have an
 * `event` are the outbox of the webhooks.
 */
export type TraceEntry = {
  readonly warrantId: string;
  /** Counts from 0 in the warrant: its version less one. */
  readonly sequence: number;
  readonly from: State | null;
  readonly to: State;
  readonly actor: Actor;
  readonly recordedAt: number;
  /** Canonical JSON of the trace payload; webhooks and receipts carry it. */
  readonly payload: string;
  readonly payloadHash: string;
  readonly rulesHash: string;
  readonly previous: string | null;
  readonly entryHash: string;
  readonly event: { readonly id: string; readonly type: EventType } | null;
};

/** Entry hash: SHA-256 of canonical JSON (decisions.md, Trace). */
export const entryHashOf = (
  entry: Pick<TraceEntry, "warrantId" | "sequence" | "previous" | "payloadHash">,
): string =>
  hashJson({
    warrant_id: entry.warrantId,
    sequence: entry.sequence,
    previous: entry.previous,
    payload_hash: entry.payloadHash,
  });

export type TraceDetails = {
  readonly actor: Actor;
  /** Never before the entry that was recorded last, whatever the clock says. */
  readonly recordedAt: number;
  readonly eventId: string;
  /** Name → hash of the named schemas; at open only. */
  readonly schemaHashes?: SchemaHashes;
  readonly checked?: CheckedPayload;
};

const payloadOf = (
  from: State | null,
  warrant: Warrant,
  details: TraceDetails,
): Wire<typeof tracePayloadForm> => ({
  warrant_id: warrant.id,
  mode: warrant.mode,
  from,
  to: warrant.state,
  version: warrant.version,
  actor: details.actor,
  recorded_at: isoTime(details.recordedAt),
  amount: warrant.amount.toString(),
  asset: warrant.asset,
  payee: warrant.payee,
  released_bps: warrant.releasedBps,
  spec_hash: warrant.specHash,
  agent_id: warrant.agentId,
  policy_id: warrant.policyId,
  policy_version: warrant.policyVersion,
  rules_hash: warrant.rulesHash,
  ...(details.schemaHashes ? { schema_hashes: details.schemaHashes } : {}),
  ...details.checked,
});

/** The trace entry of a transition, chained to the one before it. */
export function traceOf({ from, warrant }: Transition, details: TraceDetails): TraceEntry {
  const payload = canonicalJson(payloadOf(from, warrant, details));
  const payloadHash = sha256(payload);
  const link = {
    warrantId: warrant.id,
    sequence: warrant.version - 1,
    previous: warrant.traceHead,
    payloadHash,
  };
  const type = eventOf(from, warrant.state);
  return {
    ...link,
    from,
    to: warrant.state,
    actor: details.actor,
    recordedAt: details.recordedAt,
    payload,
    rulesHash: warrant.rulesHash,
    entryHash: entryHashOf(link),
    event: type === null ? null : { id: details.eventId, type },
  };
}
