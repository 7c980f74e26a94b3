import type { Database } from "bun:sqlite";
import { hashJson } from "../../../core/canonical.ts";
import { BUILT_IN_RULES_HASH } from "../../../core/policy.ts";
import { hold, type Legs, settle } from "../../../core/postings.ts";
import { isSettled, type Warrant } from "../../../core/warrant.ts";
import type { PostingKind } from "../../rows.ts";
import { createNames, type Names } from "../names.ts";
import { agents, policies, spendSessions, verifiers } from "../tables/directory.ts";
import { checks, escalations, postings, RAIL_OF_MODE } from "../tables/ledger.ts";
import { type StoredWarrant, warrantOf } from "../warrant-rows.ts";
import { expectSame, guarded, readRow, readRows } from "./rows.ts";
import { auditTrace } from "./trace.ts";

/** Every warrant with what belongs to it: its terms, its money, its trace and checks, and its escalations. */
export function* auditWarrants(database: Database): Generator<string> {
  const names = createNames(database);
  const rows = database.query<StoredWarrant, []>("SELECT * FROM warrants ORDER BY position");
  for (const row of rows.iterate()) {
    const what = `warrant ${row.id}`;
    yield* guarded(what, () => auditWarrant(database, names, what, row));
  }
}

function* auditWarrant(
  database: Database,
  names: Names,
  what: string,
  row: StoredWarrant,
): Generator<string> {
  const account = names.find("account", row.account);
  if (account) yield* expectSame(`${what}: its account's scope`, account.scope, row.scope);
  const warrant = warrantOf(row, names);
  yield* guarded(`${what}: its terms`, () => auditTerms(database, warrant, what));
  yield* guarded(`${what}: its postings`, () => auditPostings(database, warrant, row, what));
  yield* guarded(`${what}: its trace`, () => auditTrace(database, warrant, row.position, what));
  yield* guarded(`${what}: its escalations`, () =>
    auditEscalations(database, warrant, Number(row.position), what),
  );
}

const isOf = (
  warrant: Warrant,
  row: { readonly organisationId: string; readonly mode?: string } | null,
): boolean =>
  row?.organisationId === warrant.organisationId && (row.mode === undefined || row.mode === warrant.mode);

/** The spec is what its hash says, and what the warrant refers to is there and of its own organisation and mode. */
function* auditTerms(database: Database, warrant: Warrant, what: string): Generator<string> {
  yield* expectSame(`${what}: spec_hash`, warrant.specHash, hashJson(warrant.spec));
  const { agentId, sessionId, verifierId, policyId } = warrant;
  if (agentId !== null && !isOf(warrant, readRow(database, agents, agentId))) {
    yield `${what}: its organisation and mode have no agent ${agentId}`;
  }
  if (sessionId !== null && readRow(database, spendSessions, sessionId)?.agentId !== agentId) {
    yield `${what}: its agent has no session ${sessionId}`;
  }
  if (verifierId !== null && !isOf(warrant, readRow(database, verifiers, verifierId))) {
    yield `${what}: its organisation has no verifier ${verifierId}`;
  }
  const policy = policyId === null ? null : readRow(database, policies, policyId);
  if (policyId !== null && !isOf(warrant, policy)) {
    yield `${what}: its organisation has no policy ${policyId}`;
    return;
  }
  yield* expectSame(
    `${what}: rules_hash against its policy`,
    warrant.rulesHash,
    policy?.rulesHash ?? BUILT_IN_RULES_HASH,
  );
}

/** One posting holds the amount; a settled warrant has one more, which pays its share and returns the rest. */
function* auditPostings(
  database: Database,
  warrant: Warrant,
  { position, account }: StoredWarrant,
  what: string,
): Generator<string> {
  const found = readRows(
    database,
    postings,
    "WHERE cause = ? AND kind <> 'deposit' ORDER BY kind LIMIT 3",
    position,
  );
  const expected = isSettled(warrant.state)
    ? [hold(warrant.amount), settle(warrant.amount, warrant.releasedBps ?? 0)]
    : [hold(warrant.amount)];
  if (found.length !== expected.length) {
    const many = found.length === 3 ? "3 or more" : found.length;
    yield `${what}: is ${warrant.state} with ${many} postings, not ${expected.length}`;
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

/** A warrant that waits for a person has one escalation that is not resolved; others have none. */
function* auditEscalations(
  database: Database,
  warrant: Warrant,
  position: number,
  what: string,
): Generator<string> {
  const found = readRows(database, escalations, "WHERE warrant_id = ?", warrant.id);
  const waiting = found.filter(({ status }) => status !== "resolved");
  const waits = ["escalated", "frozen", "disputed"].includes(warrant.state);
  if (waiting.length !== (waits ? 1 : 0)) {
    yield `${what}: is ${warrant.state} with ${waiting.length} escalations that are not resolved`;
  }
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
    const [check] = readRows(
      database,
      checks,
      "WHERE warrant = ? AND id = ?",
      position,
      escalation.checkId,
    );
    if (!check)
      yield `${which} names the check ${escalation.checkId} of another warrant`;
    else yield* expectSame(`${which}: score against its check`, escalation.score, check.score);
  }
}
