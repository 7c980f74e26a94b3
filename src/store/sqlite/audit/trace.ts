import { canonicalJson } from "../../../core/canonical.ts";
import type { Check } from "../../../core/check.ts";
import { schemaNamesOf } from "../../../core/clauses/registry.ts";
import { isId } from "../../../core/ids.ts";
import type { Actor } from "../../../core/roles.ts";
import { entryAt, entryHashOf, type TraceStep } from "../../../core/trace.ts";
import {
  eventOf,
  isLegalMove,
  isSettled,
  type Mover,
  type State,
  type Warrant,
} from "../../../core/warrant.ts";
import { checkOf, traceStepOf } from "../rows.ts";
import type { Belongings } from "./belongings.ts";
import { expectSame } from "./rows.ts";

/** The hash of a named schema in the warrant's organisation; an empty list where there is no such schema. */
type SchemaHashesOf = (name: string) => readonly string[];

/**
 * Checks a warrant's trace: every move, every payload and hash, the checks that entries name, and that the
 * last entry fits the warrant's row.
 */
export function* auditTrace(
  warrant: Warrant,
  belongings: Pick<Belongings, "checks" | "trace">,
  hashesOf: SchemaHashesOf,
  what: string,
): Generator<string> {
  const steps = belongings.trace.map(({ read }) => traceStepOf(read(), warrant.id));
  const found = belongings.checks.map(({ read }) => checkOf(read(), warrant.id));
  const unnamed = new Map(found.map((check) => [check.id, check]));
  let before: TraceStep | null = null;
  for (const [index, step] of steps.entries()) {
    const which = `${what}: its trace entry ${step.sequence}`;
    yield* expectSame(`${which}: sequence`, step.sequence, index);
    yield* auditMove(step, before?.to ?? null, which);
    yield* auditSchemas(hashesOf, warrant, step, which);
    const check = yield* takeCheck(step, unnamed, which);
    if ((check?.id ?? null) === step.checkId) yield* auditEntry(warrant, step, before, check, which);
    before = step;
  }
  for (const id of unnamed.keys()) yield `${what}: its check ${id} is in no trace entry`;
  if (!before) {
    yield `${what}: has no trace`;
    return;
  }
  yield* auditEnd(warrant, steps.length, before, what);
  yield* expectSame(`${what}: opened_at against its trace`, warrant.openedAt, steps[0]?.recordedAt);
}

/**
 * Checks the hash of an entry, which covers the previous entry's and the payload. The payload is written again
 * from the step, its check and the terms that it holds (`core/trace.ts`): so the message cannot say which of
 * them was changed. Other terms, such as the deadline, the session and the verifier, are in no payload: a
 * change of these gives the same hash. A trigger forbids it, and the audit would not see every one.
 */
function* auditEntry(
  warrant: Warrant,
  step: TraceStep,
  before: TraceStep | null,
  check: Check | null,
  which: string,
): Generator<string> {
  const entry = entryAt(warrant, step, before, check);
  yield* expectSame(`${which}: entry_hash`, step.entryHash, entryHashOf(entry));
  const fires = eventOf(step.from, step.to) !== null;
  if (fires !== (step.eventId !== null)) yield `${which}: its event_id is ${step.eventId}`;
  else if (step.eventId !== null && !isId("event", step.eventId))
    yield `${which}: its event_id is ${step.eventId}`;
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
function* auditMove(entry: TraceStep, before: State | null, which: string): Generator<string> {
  yield* expectSame(`${which}: from`, entry.from, before);
  const movers = MOVERS[entry.actor.kind];
  const legal =
    entry.from === null
      ? entry.to === "held" && movers.includes("caller")
      : movers.some((mover) => entry.from !== null && isLegalMove(entry.from, entry.to, mover));
  if (!legal)
    yield `${which}: ${entry.from ?? "(none)"} → ${entry.to} is no legal move of ${entry.actor.kind}`;
}

/** Checks that the first entry has the hashes of the organisation's schemas. */
function* auditSchemas(
  hashesOf: SchemaHashesOf,
  warrant: Warrant,
  { from, schemaHashes }: TraceStep,
  which: string,
): Generator<string> {
  if (from !== null) return;
  const names = schemaNamesOf(warrant.spec.clauses);
  // Most warrants name no schema.
  if (names.length === 0 && schemaHashes !== null && Object.keys(schemaHashes).length === 0) return;
  const expected = canonicalJson(hashesOfSchemas(hashesOf, names));
  yield* expectSame(`${which}: schema_hashes`, canonicalJson(schemaHashes), expected);
}

const hashesOfSchemas = (
  hashesOf: SchemaHashesOf,
  names: readonly string[],
): Readonly<Record<string, string>> =>
  Object.fromEntries(names.flatMap((name) => hashesOf(name).map((hash) => [name, hash])));

/** Checks that exactly the decisions of a policy name a check, and takes that check out of `unnamed`. */
function* takeCheck(
  { from, to, checkId }: TraceStep,
  unnamed: Map<string, Check>,
  which: string,
): Generator<string, Check | null> {
  const follows = from === "verifying" && (isSettled(to) || to === "escalated");
  const check = checkId === null ? undefined : unnamed.get(checkId);
  if (follows !== (checkId !== null) || (checkId !== null && !check)) {
    yield `${which}: names the check ${checkId}, which is not there or was named before`;
    return null;
  }
  if (checkId !== null) unnamed.delete(checkId);
  return check ?? null;
}

/** Checks that the warrant's row is as the last entry left it. */
function* auditEnd(warrant: Warrant, count: number, last: TraceStep, what: string): Generator<string> {
  yield* expectSame(`${what}: version against its trace`, warrant.version, count);
  yield* expectSame(`${what}: state against its trace`, warrant.state, last.to);
  yield* expectSame(`${what}: trace_head`, warrant.traceHead, last.entryHash);
  yield* expectSame(
    `${what}: settled_at against its trace`,
    warrant.settledAt,
    isSettled(last.to) ? last.recordedAt : null,
  );
}
