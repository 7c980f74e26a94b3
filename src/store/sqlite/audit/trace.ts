import type { Database } from "bun:sqlite";
import { canonicalJson, sha256 } from "../../../core/canonical.ts";
import { type Check, checkHashOf } from "../../../core/check.ts";
import { schemaNamesOf } from "../../../core/clauses/registry.ts";
import { isId } from "../../../core/ids.ts";
import type { Actor } from "../../../core/roles.ts";
import { type CheckedPayload, entryHashOf, type TraceEntry, traceOf } from "../../../core/trace.ts";
import { isLegalMove, isSettled, type Mover, type State, type Warrant } from "../../../core/warrant.ts";
import { traceEntryOf } from "../rows.ts";
import { schemas } from "../tables/directory.ts";
import { checks, trace } from "../tables/ledger.ts";
import { expectSame, readRows } from "./rows.ts";

/** A warrant's chain: every link, every move, every payload and the checks that they name; its end is the warrant's row. */
export function* auditTrace(database: Database, warrant: Warrant, what: string): Generator<string> {
  const entries = readRows(database, trace, "WHERE warrant_id = ? ORDER BY sequence", warrant.id).map(
    traceEntryOf,
  );
  const found = readRows(database, checks, "WHERE warrant_id = ?", warrant.id);
  const unnamed = new Map(found.map((check) => [check.id, check]));
  let previous: TraceEntry | null = null;
  for (const [index, entry] of entries.entries()) {
    const which = `${what}: its trace entry ${entry.sequence}`;
    yield* expectSame(`${which}: sequence`, entry.sequence, index);
    yield* auditLink(entry, previous, which);
    yield* auditMove(entry, previous?.to ?? null, which);
    yield* auditPayload(database, warrant, entry, unnamed, which);
    previous = entry;
  }
  for (const id of unnamed.keys()) yield `${what}: its check ${id} is in no trace entry`;
  if (!previous) {
    yield `${what}: has no trace`;
    return;
  }
  yield* auditEnd(warrant, entries.length, previous, what);
  yield* expectSame(`${what}: opened_at against its trace`, warrant.openedAt, entries[0]?.recordedAt);
}

/** The hashes, and the link to the entry before. */
function* auditLink(entry: TraceEntry, previous: TraceEntry | null, which: string): Generator<string> {
  yield* expectSame(`${which}: previous`, entry.previous, previous?.entryHash ?? null);
  yield* expectSame(`${which}: payload_hash`, entry.payloadHash, sha256(entry.payload));
  yield* expectSame(`${which}: entry_hash`, entry.entryHash, entryHashOf(entry));
}

/** As whom an actor may move a warrant. */
const MOVERS: Readonly<Record<Actor["kind"], readonly Mover[]>> = {
  agent: ["caller"],
  user: ["caller", "operator", "second"],
  system: ["system"],
};

/** It begins where the last one ended, and the table of moves allows it to that actor. */
function* auditMove(entry: TraceEntry, before: State | null, which: string): Generator<string> {
  yield* expectSame(`${which}: from`, entry.from, before);
  const movers = MOVERS[entry.actor.kind];
  const legal =
    entry.from === null
      ? entry.to === "held" && movers.includes("caller")
      : movers.some((mover) => entry.from !== null && isLegalMove(entry.from, entry.to, mover));
  if (!legal)
    yield `${which}: ${entry.from ?? "(none)"} → ${entry.to} is no legal move of ${entry.actor.kind}`;
}

type Fields = Readonly<Record<string, unknown>>;

/** The payload says what core would have written, field by field. */
function* auditPayload(
  database: Database,
  warrant: Warrant,
  entry: TraceEntry,
  unnamed: Map<string, Check>,
  which: string,
): Generator<string> {
  const payload = JSON.parse(entry.payload) as Fields;
  const checked = yield* takeCheck(entry, payload, unnamed, which);
  const schemaHashes = entry.from === null ? hashesOfSchemas(database, warrant) : null;
  const expected = traceOf(
    { from: entry.from, warrant: warrantAt(warrant, entry), legs: null },
    {
      actor: entry.actor,
      recordedAt: entry.recordedAt,
      eventId: entry.event?.id ?? "",
      ...(schemaHashes && { schemaHashes }),
      ...(checked && { checked }),
    },
  );
  yield* expectSame(`${which}: rules_hash`, entry.rulesHash, warrant.rulesHash);
  yield* expectSame(`${which}: event_type`, entry.event?.type ?? null, expected.event?.type ?? null);
  if (entry.event && !isId("event", entry.event.id)) yield `${which}: its event_id is ${entry.event.id}`;
  if (entry.payload === expected.payload) return;
  const fields = JSON.parse(expected.payload) as Fields;
  for (const name of new Set([...Object.keys(fields), ...Object.keys(payload)])) {
    yield* expectSame(`${which}: ${name} in its payload`, textOf(payload[name]), textOf(fields[name]));
  }
  if (textOf(payload) === textOf(fields)) yield `${which}: its payload is not canonical JSON`;
}

const textOf = (value: unknown): string | undefined =>
  value === undefined ? undefined : canonicalJson(value);

/** The warrant as it was after the entry. A share is paid by the last one only. */
const warrantAt = (warrant: Warrant, entry: TraceEntry): Warrant => ({
  ...warrant,
  state: entry.to,
  version: entry.sequence + 1,
  releasedBps: entry.to === "released" || entry.to === "partially_released" ? warrant.releasedBps : null,
  traceHead: entry.previous,
});

const hashesOfSchemas = (database: Database, warrant: Warrant): Readonly<Record<string, string>> =>
  Object.fromEntries(
    schemaNamesOf(warrant.spec.clauses).flatMap((name) =>
      readRows(database, schemas, "WHERE organisation_id = ? AND name = ?", warrant.organisationId, name).map(
        ({ schemaHash }) => [name, schemaHash],
      ),
    ),
  );

/** What the policy decided names its check, and says of it what the record says; the check is crossed off. */
function* takeCheck(
  entry: TraceEntry,
  payload: Fields,
  unnamed: Map<string, Check>,
  which: string,
): Generator<string, CheckedPayload | null> {
  const follows = entry.from === "verifying" && (isSettled(entry.to) || entry.to === "escalated");
  if (!follows) return null;
  const id = String(payload.check_id);
  const check = unnamed.get(id);
  if (!check) {
    yield `${which}: names the check ${id}, which is not there or was named before`;
    return null;
  }
  unnamed.delete(id);
  return {
    check_id: id,
    score: check.score,
    reason_codes: check.reasonCodes,
    evidence_hash: check.evidenceHash,
    check_hash: checkHashOf(check),
  };
}

/** The warrant's row is where its trace ends. */
function* auditEnd(warrant: Warrant, count: number, last: TraceEntry, what: string): Generator<string> {
  yield* expectSame(`${what}: version against its trace`, warrant.version, count);
  yield* expectSame(`${what}: state against its trace`, warrant.state, last.to);
  yield* expectSame(`${what}: trace_head`, warrant.traceHead, last.entryHash);
  yield* expectSame(
    `${what}: settled_at against its trace`,
    warrant.settledAt,
    isSettled(last.to) ? last.recordedAt : null,
  );
}
