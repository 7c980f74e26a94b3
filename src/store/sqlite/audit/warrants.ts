import type { Database } from "bun:sqlite";
import { hashJson } from "../../../core/canonical.ts";
import { BUILT_IN_RULES_HASH } from "../../../core/policy.ts";
import { hold, type Legs, settle } from "../../../core/postings.ts";
import { isSettled, type State, WAITING_STATES, type Warrant } from "../../../core/warrant.ts";
import type { PostingKind } from "../../rows.ts";
import { createNames, type Names } from "../names.ts";
import { agents, apiKeys, policies, schemas, spendSessions, verifiers } from "../tables/directory.ts";
import { RAIL_OF_MODE } from "../tables/ledger.ts";
import { type StoredWarrant, warrantOf } from "../warrant-rows.ts";
import { type Belongings, readWarrants } from "./belongings.ts";
import { expectSame, guarded, inSnapshot, memoised, readRow, readRows } from "./rows.ts";
import { BY_POSITION, slicesOf } from "./slices.ts";
import { auditTrace } from "./trace.ts";

/** Many warrants have the same spec. Longer ones are not remembered, so that the memory of an audit is bounded. */
const SPEC_SHORT = 4_096;

/** Reads what warrants refer to by id, each row once. Only its unchanging fields are compared. */
type Directory = ReturnType<typeof createDirectory>;

const createDirectory = (database: Database) => ({
  spec: memoised(readSpec),
  apiKey: memoised((id: string) => readRow(database, apiKeys, id)),
  agent: memoised((id: string) => readRow(database, agents, id)),
  session: memoised((id: string) => readRow(database, spendSessions, id)),
  verifier: memoised((id: string) => readRow(database, verifiers, id)),
  policy: memoised((id: string) => readRow(database, policies, id)),
  schemaHashes: memoised((key: string) => {
    const [organisationId = "", ...name] = key.split(" ");
    return readRows(
      database,
      schemas,
      "WHERE organisation_id = ? AND name = ?",
      organisationId,
      name.join(" "),
    );
  }),
});

/** The hash of a spec, and whether its text is as Holdfast writes it: the hash is the same with a space more. */
function readSpec(text: string): { readonly hash: string; readonly isAsWritten: boolean } {
  const spec = JSON.parse(text);
  return { hash: hashJson(spec), isAsWritten: JSON.stringify(spec) === text };
}

const WARRANTS_AT_ONCE = 1_000;

/** Checks every warrant together with its postings, trace, checks and escalations. */
export function* auditWarrants(database: Database): Generator<string> {
  const names = createNames(database);
  const directory = createDirectory(database);
  for (const slice of slicesOf(database, "warrants", BY_POSITION, WARRANTS_AT_ONCE)) {
    const { warrants, missing } = inSnapshot(database, () => readWarrants(database, slice));
    for (const { row, belongings } of warrants) {
      const what = `warrant ${row.id}`;
      yield* guarded(what, () => auditWarrant(directory, names, what, row, belongings));
    }
    for (const { position, table } of missing)
      yield `the warrant at position ${position}: has rows in ${table}, and is not there`;
  }
}

function* auditWarrant(
  directory: Directory,
  names: Names,
  what: string,
  row: StoredWarrant,
  belongings: Belongings,
): Generator<string> {
  const account = names.find("account", row.account);
  if (account) yield* expectSame(`${what}: its account's scope`, account.scope, row.scope);
  const warrant = warrantOf(row, names);
  const hashesOf = (name: string) =>
    directory.schemaHashes(`${warrant.organisationId} ${name}`).map(({ schemaHash }) => schemaHash);
  yield* guarded(`${what}: its terms`, () => auditTerms(directory, warrant, row, what));
  yield* guarded(`${what}: who opened it`, () => auditOpener(directory, row, warrant, belongings, what));
  yield* guarded(`${what}: its postings`, () => auditPostings(warrant, row, belongings, what));
  yield* guarded(`${what}: its trace`, () => auditTrace(warrant, belongings, hashesOf, what));
  yield* guarded(`${what}: its escalations`, () => auditEscalations(warrant, belongings, what));
}

const isOf = (
  warrant: Warrant,
  row: { readonly organisationId: string; readonly mode?: string } | null,
): boolean =>
  row?.organisationId === warrant.organisationId && (row.mode === undefined || row.mode === warrant.mode);

/**
 * Checks the hash of the spec, and that everything the warrant refers to exists in its organisation and mode.
 */
function* auditTerms(
  directory: Directory,
  warrant: Warrant,
  { spec }: StoredWarrant,
  what: string,
): Generator<string> {
  const { hash, isAsWritten } = spec.length > SPEC_SHORT ? readSpec(spec) : directory.spec(spec);
  yield* expectSame(`${what}: spec_hash`, warrant.specHash, hash);
  if (!isAsWritten) yield `${what}: its spec is not written as Holdfast writes JSON`;
  const { agentId, sessionId, verifierId, policyId } = warrant;
  if (agentId !== null && !isOf(warrant, directory.agent(agentId))) {
    yield `${what}: its organisation and mode have no agent ${agentId}`;
  }
  if (sessionId !== null && directory.session(sessionId)?.agentId !== agentId) {
    yield `${what}: its agent has no session ${sessionId}`;
  }
  if (verifierId !== null && !isOf(warrant, directory.verifier(verifierId))) {
    yield `${what}: its organisation has no verifier ${verifierId}`;
  }
  const policy = policyId === null ? null : directory.policy(policyId);
  if (policyId !== null && !isOf(warrant, policy)) {
    yield `${what}: its organisation has no policy ${policyId}`;
    return;
  }
  // With a policy, the hash of its rules is checked as a part of the trace.
  if (policy === null)
    yield* expectSame(`${what}: rules_hash without a policy`, warrant.rulesHash, BUILT_IN_RULES_HASH);
}

/** Checks that it was opened by who made the first entry of the trace. An older version did not keep who opened it. */
function* auditOpener(
  directory: Directory,
  { opened_by_user: userId }: StoredWarrant,
  { openedBy }: Warrant,
  { trace: [opening] }: Belongings,
  what: string,
): Generator<string> {
  if (openedBy === null || !opening) return;
  const { actorKind, actorId } = opening.read();
  const agentId =
    actorKind === "agent" && actorId !== null ? (directory.apiKey(actorId)?.agentId ?? null) : null;
  yield* expectSame(
    `${what}: the agent that opened it, against its trace`,
    openedBy.kind === "agent" ? openedBy.id : null,
    agentId,
  );
  yield* expectSame(
    `${what}: the person who opened it, against its trace`,
    userId,
    actorKind === "user" ? actorId : null,
  );
}

/**
 * Checks the postings: one holds the amount, and a second one of a settled warrant pays its share and returns
 * the rest.
 */
function* auditPostings(
  warrant: Warrant,
  { account }: StoredWarrant,
  belongings: Belongings,
  what: string,
): Generator<string> {
  const found = belongings.postings.map(({ read }) => read());
  const expected = isSettled(warrant.state)
    ? [hold(warrant.amount), settle(warrant.amount, warrant.releasedBps ?? 0)]
    : [hold(warrant.amount)];
  if (found.length !== expected.length) {
    yield `${what}: is ${warrant.state} with ${found.length} postings, not ${expected.length}`;
  }
  for (const [index, legs] of expected.entries()) {
    const posting = found[index];
    if (!posting) continue;
    const kind: PostingKind = index === 0 ? "hold" : "settlement";
    const which = `${what}: its ${kind}'s`;
    for (const leg of Object.keys(legs) as (keyof Legs)[]) {
      yield* expectSame(`${which} ${leg}`, posting[leg], legs[leg]);
    }
    yield* expectSame(`${which} kind`, posting.kind, kind);
    yield* expectSame(`${which} account`, posting.account, Number(account));
    yield* expectSame(`${which} rail`, posting.rail, RAIL_OF_MODE[warrant.mode]);
    const recordedAt = kind === "hold" ? warrant.openedAt : warrant.settledAt;
    yield* expectSame(`${which} recorded_at`, posting.recordedAt, recordedAt);
  }
}

/** A move to one of these raises an escalation. */
const RAISING: readonly State[] = ["escalated", "frozen"];

/**
 * Checks that a warrant has an escalation for each time that it came to wait for a person, and that one of them is not resolved
 * while it waits, otherwise none.
 */
function* auditEscalations(warrant: Warrant, belongings: Belongings, what: string): Generator<string> {
  const found = belongings.escalations.map(({ read }) => read());
  const waiting = found.filter(({ status }) => status !== "resolved");
  const waits = WAITING_STATES.some((state) => state === warrant.state);
  if (waiting.length !== (waits ? 1 : 0)) {
    yield `${what}: is ${warrant.state} with ${waiting.length} escalations that are not resolved`;
  }
  const raised = belongings.trace.filter(({ raw }) => RAISING.some((state) => state === raw.to_state)).length;
  if (found.length !== raised)
    yield `${what}: has ${found.length} escalations, and its trace raised ${raised}`;
  for (const escalation of found) {
    const which = `${what}: its escalation ${escalation.id}`;
    if (!isOf(warrant, escalation)) yield `${which} is of another organisation or mode`;
    if (escalation.status !== "resolved") {
      yield* expectSame(
        `${which}: status`,
        escalation.status,
        warrant.state === "disputed" ? "disputed" : "open",
      );
    }
    if (escalation.checkId === null) continue;
    const check = belongings.checks.find(({ raw }) => raw.id === escalation.checkId)?.read();
    if (!check) yield `${which} names the check ${escalation.checkId} of another warrant`;
    else yield* expectSame(`${which}: score against its check`, escalation.score, check.score);
  }
}
