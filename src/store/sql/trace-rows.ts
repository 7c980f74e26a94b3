import type { Actor } from "../../core/roles.ts";
import type { TraceStep } from "../../core/trace.ts";
import type { State } from "../../core/warrant.ts";
import { hexOf } from "./columns.ts";

/** A row of `trace` as the driver reads it. The audit reads all of them, and drizzle's mapping would take five times as long. */
export type StoredStep = {
  readonly warrant: bigint;
  readonly sequence: bigint;
  readonly from_state: State | null;
  readonly to_state: State;
  readonly actor_kind: Actor["kind"];
  readonly actor_id: string | null;
  readonly recorded_at: bigint;
  readonly encoding: bigint;
  readonly schema_hashes: string | null;
  readonly check_id: string | null;
  readonly entry_hash: Uint8Array;
  readonly event_id: string | null;
};

export const storedStepOf = (row: StoredStep, warrantId: string): TraceStep => ({
  warrantId,
  sequence: Number(row.sequence),
  from: row.from_state,
  to: row.to_state,
  actor:
    row.actor_kind === "system" || row.actor_id === null
      ? { kind: "system", id: null }
      : { kind: row.actor_kind, id: row.actor_id },
  recordedAt: Number(row.recorded_at),
  encoding: Number(row.encoding),
  schemaHashes: row.schema_hashes === null ? null : JSON.parse(row.schema_hashes),
  checkId: row.check_id,
  eventId: row.event_id,
  entryHash: hexOf(row.entry_hash),
});
