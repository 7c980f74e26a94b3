import type { Database } from "bun:sqlite";
import { hashJson } from "../../../core/canonical.ts";
import { schemaNamesOf } from "../../../core/clauses/registry.ts";
import { BUILT_IN_RULES_HASH } from "../../../core/policy.ts";
import { hold, type PostingKind, settle } from "../../../core/postings.ts";
import { isSettled, type Spec, type State, WAITING_STATES, type Warrant } from "../../../core/warrant.ts";
import { createNames, type Names } from "../../sql/names.ts";
import { agents, apiKeys, policies, schemas, spendSessions, verifiers } from "../../sql/tables/directory.ts";
import { RAIL_OF_MODE } from "../../sql/tables/ledger.ts";
import { type StoredWarrant, warrantOf } from "../../sql/warrant-rows.ts";
import { type Belongings, readWarrants } from "./belongings.ts";
import { LEGS } from "./postings.ts";
import { compare, guard, inSnapshot, memoised, readRow, readRows, type Say } from "./rows.ts";
import { BY_POSITION, type Did, slicesOf } from "./slices.ts";
import { auditTrace } from "./trace.ts";

/** Many warrants have the same spec. Longer ones are not remembered, so that the memory of an audit is bounded. */
const SPEC_SHORT = 4_096;

/** A spec, and what follows from it. */
type ReadSpec = {
  readonly spec: Spec;
  readonly hash: string;
  /** Whether its text is as Holdfast writes it: the hash is the same with a space more. */
  readonly isAsWritten: boolean;
  readonly schemaNames: readonly string[];
};

function readSpec(text: string): ReadSpec {
  const spec = JSON.parse(text) as Spec;
  const isAsWritten = JSON.stringify(spec) === text;
  return { spec, hash: hashJson(spec), isAsWritten, schemaNames: schemaNamesOf(spec.clauses) };
}

/** Reads what warrants refer to by id, each row once. Only its unchanging fields are compared. */
type Directory = ReturnType<typeof createDirectory>;

const createDirectory = (database: Database) => ({
  shortSpec: memoised(readSpec),
  apiKey: memoised((id: string) => readRow(database, apiKeys, id)),
  agent: memoised((id: string) => readRow(database, agents, id)),
  session: memoised((id: string) => readRow(database, spendSessions, id)),
  verifier: memoised((id: string) => readRow(database, verifiers, id)),
  policy: memoised((id: string) => readRow(database, policies, id)),
  schemaHashes: memoised((key: string) => {
    const [organisationId = "", ...name] = key.split(" ");
    const found = readRows(
      database,
      schemas,
      "WHERE organisation_id = ? AND name = ?",
      organisationId,
      name.join(" "),
    );
    return found.map(({ schemaHash }) => schemaHash);
  }),
});

const WARRANTS_AT_ONCE = 1_000;

/** Checks every warrant together with its postings, trace, checks and escalations. */
export function* auditWarrants(database: Database, did: Did): Generator<string> {
  const names = createNames(database);
  const directory = createDirectory(database);
  for (const slice of slicesOf(database, "warrants", BY_POSITION, WARRANTS_AT_ONCE, did)) {
    const { warrants, missing } = inSnapshot(database, () => readWarrants(database, slice));
    for (const { row, belongings } of warrants) {
      const messages: string[] = [];
      const say: Say = (message) => void messages.push(message);
      const what = `warrant ${row.id}`;
      guard(say, what, () => auditWarrant(say, directory, names, what, row, belongings));
      yield* messages;
    }
    for (const { position, table } of missing)
      yield `the warrant at position ${position}: has rows in ${table}, but does not exist`;
  }
}

function auditWarrant(
  say: Say,
  directory: Directory,
  names: Names,
  what: string,
  row: StoredWarrant,
  belongings: Belongings,
): void {
  const account = names.find("account", row.account);
  if (account) compare(say, `${what}: its account's scope`, account.scope, row.scope);
  const read = row.spec.length > SPEC_SHORT ? readSpec(row.spec) : directory.shortSpec(row.spec);
  const warrant = warrantOf(row, names, () => read.spec);
  const named = {
    names: read.schemaNames,
    hashesOf: (name: string) => directory.schemaHashes(`${warrant.organisationId} ${name}`),
  };
  guard(say, `${what}: its terms`, () => auditTerms(say, directory, warrant, read, what));
  guard(say, `${what}: who opened it`, () => auditOpener(say, directory, row, warrant, belongings, what));
  guard(say, `${what}: its postings`, () => auditPostings(say, warrant, row, belongings, what));
  guard(say, `${what}: its trace`, () => auditTrace(say, warrant, belongings, named, what));
  guard(say, `${what}: its escalations`, () => auditEscalations(say, warrant, belongings, what));
}

const isOf = (
  warrant: Warrant,
  row: { readonly organisationId: string; readonly mode?: string } | null,
): boolean =>
  row?.organisationId === warrant.organisationId && (row.mode === undefined || row.mode === warrant.mode);

/**
 * Checks the hash of the spec, and that everything the warrant refers to exists in its organisation and mode.
 */
function auditTerms(
  say: Say,
  directory: Directory,
  warrant: Warrant,
  { hash, isAsWritten }: ReadSpec,
  what: string,
): void {
  compare(say, `${what}: spec_hash`, warrant.specHash, hash);
  if (!isAsWritten) say(`${what}: its spec is not written as Holdfast writes JSON`);
  const { agentId, sessionId, verifierId, policyId } = warrant;
  if (agentId !== null && !isOf(warrant, directory.agent(agentId))) {
    say(`${what}: its organisation and mode have no agent ${agentId}`);
  }
  if (sessionId !== null && directory.session(sessionId)?.agentId !== agentId) {
    say(`${what}: its agent has no session ${sessionId}`);
  }
  if (verifierId !== null && !isOf(warrant, directory.verifier(verifierId))) {
    say(`${what}: its organisation has no verifier ${verifierId}`);
  }
  const policy = policyId === null ? null : directory.policy(policyId);
  if (policyId !== null && !isOf(warrant, policy)) {
    say(`${what}: its organisation has no policy ${policyId}`);
    return;
  }
  // With a policy, the hash of its rules is checked as a part of the trace.
  if (policy === null)
    compare(say, `${what}: rules_hash without a policy`, warrant.rulesHash, BUILT_IN_RULES_HASH);
}

/** Checks that it was opened by who made the first entry of the trace. An older version did not keep who opened it. */
function auditOpener(
  say: Say,
  directory: Directory,
  { opened_by_user: userId }: StoredWarrant,
  { openedBy }: Warrant,
  { trace: [opening] }: Belongings,
  what: string,
): void {
  if (openedBy === null || !opening) return;
  const { actor_kind: kind, actor_id: id } = opening;
  const agentId = kind === "agent" && id !== null ? (directory.apiKey(id)?.agentId ?? null) : null;
  compare(
    say,
    `${what}: the agent that opened it, against its trace`,
    openedBy.kind === "agent" ? openedBy.id : null,
    agentId,
  );
  compare(say, `${what}: the person who opened it, against its trace`, userId, kind === "user" ? id : null);
}

/**
 * Checks the postings: one holds the amount, and a second one of a settled warrant pays its share and returns
 * the rest.
 */
function auditPostings(
  say: Say,
  warrant: Warrant,
  row: StoredWarrant,
  { postings, paidBy }: Belongings,
  what: string,
): void {
  const expected = isSettled(warrant.state)
    ? [hold(warrant.amount), settle(warrant.amount, warrant.releasedBps ?? 0, paidBy)]
    : [hold(warrant.amount)];
  if (postings.length !== expected.length) {
    say(`${what}: is ${warrant.state} with ${postings.length} postings, not ${expected.length}`);
  }
  for (const [index, legs] of expected.entries()) {
    const posting = postings[index];
    if (!posting) continue;
    const kind: PostingKind = index === 0 ? "hold" : "settlement";
    const which = `${what}: its ${kind}'s`;
    for (const leg of LEGS) compare(say, `${which} ${leg}`, posting[leg], legs[leg]);
    compare(say, `${which} kind`, posting.kind, kind);
    compare(say, `${which} account`, posting.account, row.account);
    compare(say, `${which} rail`, posting.rail, RAIL_OF_MODE[warrant.mode]);
    const recordedAt = kind === "hold" ? row.opened_at : row.settled_at;
    compare(say, `${which} recorded_at`, posting.recorded_at, recordedAt);
  }
}

/** A move to one of these raises an escalation. What becomes known of a payment raises another one without a move. */
const RAISING: readonly State[] = ["escalated", "frozen"];

/**
 * Checks that a warrant has an escalation for each time that it came to wait for a person, and that one of them is not resolved
 * while it waits, otherwise none.
 */
function auditEscalations(say: Say, warrant: Warrant, belongings: Belongings, what: string): void {
  const found = belongings.escalations.map(({ read }) => read());
  const waiting = found.filter(({ status }) => status !== "resolved");
  const waits = WAITING_STATES.some((state) => state === warrant.state);
  if (waiting.length !== (waits ? 1 : 0)) {
    say(`${what}: is ${warrant.state} with ${waiting.length} escalations that are not resolved`);
  }
  const raised = belongings.trace.filter(({ to_state: to }) => RAISING.includes(to)).length;
  if (found.length < raised) say(`${what}: has ${found.length} escalations, and its trace raised ${raised}`);
  for (const escalation of found) {
    const which = `${what}: its escalation ${escalation.id}`;
    if (!isOf(warrant, escalation)) say(`${which} is of another organisation or mode`);
    if (escalation.status !== "resolved") {
      const status = warrant.state === "disputed" ? "disputed" : "open";
      compare(say, `${which}: status`, escalation.status, status);
    }
    if (escalation.checkId === null) continue;
    const check = belongings.checks.find(({ raw }) => raw.id === escalation.checkId)?.read();
    if (!check) say(`${which} names the check ${escalation.checkId} of another warrant`);
    else compare(say, `${which}: score against its check`, escalation.score, check.score);
  }
}
