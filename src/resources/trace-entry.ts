import { anyObject, count, form, hash, object, oneOf, orNull, text, time, type Wire } from "../core/form.ts";
import { isoTime } from "../core/time.ts";
import { actorForm, type TraceEntry } from "../core/trace.ts";
import { STATES } from "../core/warrant.ts";
import { listForm } from "./list.ts";

/** An entry of a warrant's trace (docs/security, "Trace"). */

export const traceEntryForm = form("TraceEntry", () =>
  object({
    to: oneOf(STATES),
    from: orNull(oneOf(STATES)),
    actor: actorForm(),
    recorded_at: time,
    payload_hash: hash,
    rules_hash: hash,
    chain_ref: orNull(text),
    sequence: count,
    payload: anyObject<object>("What payload_hash hashes."),
    entry_hash: hash,
  }),
);

export const traceEntryResource = (
  entry: TraceEntry,
  chainRef: string | null,
): Wire<typeof traceEntryForm> => ({
  to: entry.to,
  from: entry.from,
  actor: entry.actor,
  recorded_at: isoTime(entry.recordedAt),
  payload_hash: entry.payloadHash,
  rules_hash: entry.rulesHash,
  chain_ref: chainRef,
  sequence: entry.sequence,
  payload: JSON.parse(entry.payload) as object,
  entry_hash: entry.entryHash,
});

export const traceListForm = form("TraceList", () => listForm(traceEntryForm(), {}));
