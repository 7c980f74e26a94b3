import type { Database } from "bun:sqlite";
import { hashJson } from "../../../core/canonical.ts";
import { BUILT_IN_RULES_HASH } from "../../../core/policy.ts";
import { hold, type Legs, settle } from "../../../core/postings.ts";
import { isSettled, type Warrant } from "../../../core/warrant.ts";
import type { WarrantRow } from "../rows.ts";
import { agents, policies, spendSessions, verifiers } from "../tables/directory.ts";
import { checks, escalations, postings, RAIL_OF_MODE, warrants } from "../tables/ledger.ts";
import { expectSame, guarded, readRow, readRows, rowsOf } from "./rows.ts";
import { auditTrace } from "./trace.ts";

/** Every warrant with what belongs to it: its terms, its money, its trace and checks, and its escalations. */
export function* auditWarrants(database: Database): Generator<string> {
  for (const { raw, read } of rowsOf(database, warrants, "ORDER BY id")) {
    const what = `warrant ${raw.id}`;
    yield* guarded(what, () => auditWarrant(database, what, read));
  }
}

function* auditWarrant(database: Database, what: string, read: () => WarrantRow): Generator<string> {
  const warrant = read();
  yield* guarded(`${what}: its terms`, () => auditTerms(database, warrant, what));
  yield* guarded(`${what}: its postings`, () => auditPostings(database, warrant, what));
  yield* guarded(`${what}: its trace`, () => auditTrace(database, warrant, what));
  yield* guarded(`${what}: its escalations`, () => auditEscalations(database, warrant, what));
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
  yield* expectSame(`${what}: policy_version`, warrant.policyVersion, policy?.version ?? null);
  yield* expectSame(
    `${what}: rules_hash against its policy`,
    warrant.rulesHash,
    policy?.rulesHash ?? BUILT_IN_RULES_HASH,
  );
}

/** One posting holds the amount; a settled warrant has one more, which pays its share to its payee and returns the rest. */
function* auditPostings(database: Database, warrant: Warrant, what: string): Generator<string> {
  const found = readRows(database, postings, "WHERE warrant_id = ? ORDER BY id LIMIT 3", warrant.id);
  const legs = isSettled(warrant.state)
    ? [hold(warrant.amount), settle(warrant.amount, warrant.releasedBps ?? 0)]
    : [hold(warrant.amount)];
  if (found.length !== legs.length) {
    const many = found.length === 3 ? "3 or more" : found.length;
    yield `${what}: is ${warrant.state} with ${many} postings, not ${legs.length}`;
  }
  for (const [index, expected] of legs.entries()) {
    const posting = found[index];
    if (!posting) continue;
    const which = `${what}: its ${index === 0 ? "hold" : "settlement"}'s`;
    for (const account of Object.keys(expected) as (keyof Legs)[]) {
      yield* expectSame(`${which} ${account}`, posting[account], expected[account]);
    }
    yield* expectSame(`${which} payee`, posting.payee, expected.paid > 0n ? warrant.payee : null);
    yield* expectSame(`${which} organisation`, posting.organisationId, warrant.organisationId);
    yield* expectSame(`${which} mode`, posting.mode, warrant.mode);
    yield* expectSame(`${which} rail`, posting.rail, RAIL_OF_MODE[warrant.mode]);
    yield* expectSame(`${which} asset`, posting.asset, warrant.asset);
    const recordedAt = index === 0 ? warrant.openedAt : warrant.settledAt;
    yield* expectSame(`${which} recorded_at`, posting.recordedAt, recordedAt);
  }
}

/** A warrant that waits for a person has one escalation that is not resolved; others have none. */
function* auditEscalations(database: Database, warrant: Warrant, what: string): Generator<string> {
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
    const check = readRow(database, checks, escalation.checkId);
    if (check?.warrantId !== warrant.id)
      yield `${which} names the check ${escalation.checkId} of another warrant`;
    else yield* expectSame(`${which}: score against its check`, escalation.score, check.score);
  }
}
