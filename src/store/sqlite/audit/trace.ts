import { canonicalJson } from "../../../core/canonical.ts";
import type { Check } from "../../../core/check.ts";
import { isId } from "../../../core/ids.ts";
import type { Actor } from "../../../core/roles.ts";
import { entryHashAt, type TraceStep } from "../../../core/trace.ts";
import {
  eventOf,
  isLegalMove,
  isSettled,
  type Mover,
  type State,
  type Warrant,
} from "../../../core/warrant.ts";
import { checkOf } from "../../sql/rows.ts";
import { storedStepOf } from "../../sql/trace-rows.ts";
import type { Belongings } from "./belongings.ts";
import { compare, type Say } from "./rows.ts";

/** The schemas that a warrant's spec names. */
export type NamedSchemas = {
  readonly names: readonly string[];
  /** The hash of a named schema in the warrant's organisation; an empty list where there is no such schema. */
  readonly hashesOf: (name: string) => readonly string[];
};

/**
 * Checks a warrant's trace: every move, every payload and hash, the checks that entries name, and that the
 * last entry fits the warrant's row.
 */
export function auditTrace(
  say: Say,
  warrant: Warrant,
  { trace, checks, isUnpaid }: Pick<Belongings, "checks" | "isUnpaid" | "trace">,
  schemas: NamedSchemas,
  what: string,
): void {
  const unnamed = new Map<string, Check>();
  for (const { read } of checks) {
    const check = checkOf(read(), warrant.id);
    unnamed.set(check.id, check);
  }
  let first: TraceStep | null = null;
  let before: TraceStep | null = null;
  for (const [index, row] of trace.entries()) {
    const step = storedStepOf(row, warrant.id);
    const which = `${what}: its trace entry ${step.sequence}`;
    compare(say, `${which}: sequence`, step.sequence, index);
    auditMove(say, step, before?.to ?? null, which);
    if (step.from === null) auditSchemas(say, schemas, step, which);
    const check = takeCheck(say, step, isUnpaid, unnamed, which);
    if ((check?.id ?? null) === step.checkId) auditEntry(say, warrant, step, before, check, which);
    first ??= step;
    before = step;
  }
  for (const id of unnamed.keys()) say(`${what}: its check ${id} is in no trace entry`);
  if (!before) {
    say(`${what}: has no trace`);
    return;
  }
  auditEnd(say, warrant, trace.length, before, what);
  compare(say, `${what}: opened_at against its trace`, warrant.openedAt, first?.recordedAt);
}

/**
 * Checks the hash of an entry, which covers the previous entry's and the payload. The payload is written again
 * from the step, its check and the terms that it holds (`core/trace.ts`): so the message cannot say which of
 * them was changed. Other terms, such as the deadline, the session and the verifier, are in no payload: a
 * change of these gives the same hash. A trigger forbids it, and the audit would not see every one.
 */
function auditEntry(
  say: Say,
  warrant: Warrant,
  step: TraceStep,
  before: TraceStep | null,
  check: Check | null,
  which: string,
): void {
  const hash = entryHashAt(warrant, step, before?.entryHash ?? null, check);
  compare(say, `${which}: entry_hash`, step.entryHash, hash);
  const { eventId } = step;
  const fires = eventOf(step.from, step.to) !== null;
  if (fires !== (eventId !== null) || (eventId !== null && !isId("event", eventId)))
    say(`${which}: its event_id is ${eventId}`);
}

/** The movers that each kind of actor can be. */
const MOVERS: Readonly<Record<Actor["kind"], readonly Mover[]>> = {
  agent: ["caller"],
  user: ["caller", "operator", "second"],
  system: ["system"],
};

/**
 * Checks that a move begins in the state in which the one before it ended, and that the actor may make it.
 */
function auditMove(say: Say, { from, to, actor }: TraceStep, before: State | null, which: string): void {
  compare(say, `${which}: from`, from, before);
  const movers = MOVERS[actor.kind];
  const legal =
    from === null
      ? to === "held" && movers.includes("caller")
      : movers.some((mover) => isLegalMove(from, to, mover));
  if (!legal) say(`${which}: ${from ?? "(none)"} → ${to} is no legal move of ${actor.kind}`);
}

/** Checks that the first entry has the hashes of the organisation's schemas. */
function auditSchemas(
  say: Say,
  { names, hashesOf }: NamedSchemas,
  { schemaHashes }: TraceStep,
  which: string,
): void {
  // Most warrants name no schema.
  if (names.length === 0 && schemaHashes !== null && Object.keys(schemaHashes).length === 0) return;
  const expected = Object.fromEntries(names.flatMap((name) => hashesOf(name).map((hash) => [name, hash])));
  compare(say, `${which}: schema_hashes`, canonicalJson(schemaHashes), canonicalJson(expected));
}

/**
 * Checks that exactly the decisions of a policy name a check, and takes that check out of `unnamed`. Where a check of a purchase was
 * cut off, and its chain then says that nothing was paid, the hold returns without one.
 */
function takeCheck(
  say: Say,
  { from, to, checkId }: TraceStep,
  isUnpaid: boolean,
  unnamed: Map<string, Check>,
  which: string,
): Check | null {
  const follows = from === "verifying" && (isSettled(to) || to === "escalated");
  const check = checkId === null ? undefined : unnamed.get(checkId);
  if (isUnpaid && from === "verifying" && to === "refunded" && checkId === null) return null;
  if (follows !== (checkId !== null) || (checkId !== null && !check)) {
    say(`${which}: names the check ${checkId}, which is not there or was named before`);
    return null;
  }
  if (checkId !== null) unnamed.delete(checkId);
  return check ?? null;
}

/** Checks that the warrant's row is as the last entry left it. */
function auditEnd(say: Say, warrant: Warrant, count: number, last: TraceStep, what: string): void {
  compare(say, `${what}: version against its trace`, warrant.version, count);
  compare(say, `${what}: state against its trace`, warrant.state, last.to);
  compare(say, `${what}: trace_head`, warrant.traceHead, last.entryHash);
  compare(
    say,
    `${what}: settled_at against its trace`,
    warrant.settledAt,
    isSettled(last.to) ? last.recordedAt : null,
  );
}
