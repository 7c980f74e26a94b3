import type { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { cpSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { hashJson } from "../../src/core/canonical.ts";
import { entryAt, entryHashOf, type TraceStep } from "../../src/core/trace.ts";
import { STATES, type Warrant } from "../../src/core/warrant.ts";
import { createNames } from "../../src/store/sql/names.ts";
import { checkOf, traceStepOf } from "../../src/store/sql/rows.ts";
import { checks, trace } from "../../src/store/sql/tables/ledger.ts";
import { type StoredWarrant, warrantOf } from "../../src/store/sql/warrant-rows.ts";
import { auditDeposits } from "../../src/store/sqlite/audit/deposits.ts";
import { auditPostings } from "../../src/store/sqlite/audit/postings.ts";
import { readRows } from "../../src/store/sqlite/audit/rows.ts";
import { BY_POSITION, slicesOf } from "../../src/store/sqlite/audit/slices.ts";
import { auditFolder, auditLedger } from "../../src/store/sqlite/audit.ts";
import { auditInThreads } from "../../src/store/sqlite/audit-threads.ts";
import { ledgerFile } from "../../src/store/sqlite/ledger-file.ts";
import { createTestContext } from "../support/context.ts";
import { type Corruption, expectFound, withCopy } from "../support/corrupted.ts";
import { buildGoodLedger, HUGE } from "../support/good-ledger.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
import { createCaller, createStage, open, SCRIPTED, verify, warrantIn } from "../support/stage.ts";
import { until } from "../support/until.ts";

const { afterAll, beforeAll, describe, test } = onlyEmbedded(import.meta.path);

/** A ledger with a warrant in every state, closed while a check was running; each corruption works on a copy. */
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-audit-"));
  const never = new Promise<never>(() => {});
  const ctx = createTestContext({
    ...SCRIPTED,
    fetchEvidence: (url, ...asked) => (url.includes("hang") ? never : SCRIPTED.fetchEvidence(url, ...asked)),
  });
  await buildGoodLedger(ctx);
  const stage = await createStage(ctx);
  const caller = await createCaller(stage);
  const checking = warrantIn(await open(stage, caller)).id;
  void verify(stage, caller, checking, ["hang" as never]);
  await until("it is being verified", () => ctx.reader.warrants.find(checking)?.state === "verifying");
  await ctx.store.close();
  cpSync(ctx.folder, folder, { recursive: true });
  rmSync(ctx.folder, { recursive: true });
});

/** Nobody watches its progress. */
const unwatched = () => {};

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("a ledger that moved money in every way has nothing to report", () => {
  withCopy(folder, ({ readers }) => {
    const states = readers.raw.query<{ state: string }, []>("SELECT DISTINCT state FROM warrants").all();
    expect(new Set(states.map(({ state }) => state))).toEqual(new Set(STATES));
    expect(auditLedger(readers)).toEqual([]);
  });
});

const one = (state: string, more = "") =>
  `(SELECT id FROM warrants WHERE state = '${state}' ${more} LIMIT 1)`;
const at = (state: string, more = "") =>
  `(SELECT position FROM warrants WHERE state = '${state}' ${more} LIMIT 1)`;
const of = (state: string, sequence: number) => `warrant = ${at(state)} AND sequence = ${sequence}`;
const inMode = (mode: string) => `(SELECT position FROM scopes WHERE mode = '${mode}' LIMIT 1)`;
const accountIn = (mode: string, asset: string) =>
  `(SELECT accounts.position FROM accounts JOIN scopes ON scopes.position = scope WHERE mode = '${mode}' AND asset = '${asset}')`;

/** Computes the hashes of one warrant's trace anew, as a forger would after changing it. */
function rechain(raw: Database, state: string): void {
  const warrant = readWarrants(raw).find((one) => one.state === state);
  if (!warrant) throw new Error(`no warrant is ${state}`);
  const position = raw
    .query("SELECT position FROM warrants WHERE id = ?")
    .values(warrant.id)[0]?.[0] as bigint;
  const steps = readRows(raw, trace, "WHERE warrant = ? ORDER BY sequence", position).map((row) =>
    traceStepOf(row, warrant.id),
  );
  const found = readRows(raw, checks, "WHERE warrant = ?", position).map((row) => checkOf(row, warrant.id));
  let before: TraceStep | null = null;
  for (const step of steps) {
    const check = found.find(({ id }) => id === step.checkId) ?? null;
    const entryHash = entryHashOf(entryAt(warrant, step, before, check));
    raw
      .query("UPDATE trace SET entry_hash = unhex(?) WHERE warrant = ? AND sequence = ?")
      .run(entryHash, position, step.sequence);
    before = { ...step, entryHash };
  }
  raw
    .query("UPDATE warrants SET trace_head = unhex(?) WHERE position = ?")
    .run(before?.entryHash ?? "", position);
}

const readWarrants = (raw: Database): readonly Warrant[] =>
  raw
    .query<StoredWarrant, []>("SELECT * FROM warrants")
    .all()
    .map((row) => warrantOf(row, createNames(raw)));

const POSTING =
  "INSERT INTO postings SELECT NULL, account, kind, rail, cause, available, held, paid, funding, recorded_at, payable, submitted FROM postings";
/** The hold or the settlement of a warrant in a state. */
const posted = (state: string, kind: string, more = "") => `cause = ${at(state, more)} AND kind = '${kind}'`;

const MONEY: readonly Corruption[] = [
  [
    "a balance that is not the sum of its postings",
    "UPDATE accounts SET available = available + 1, funding = funding - 1 WHERE asset = 'USDC'",
    /^the balance of .*: available against the sum of its postings is 999\d\d\d, not 999\d\d\d$/,
  ],
  [
    "one unit too many above 2^53",
    "UPDATE accounts SET held = held + 1, funding = funding - 1 WHERE asset = 'HUGE'",
    new RegExp(`held against the sum of its postings is ${HUGE - 1n}, not ${HUGE - 2n}$`),
  ],
  [
    "a balance that is gone",
    "DELETE FROM accounts WHERE asset = 'HUGE'",
    /^account \d+: is not there, though/,
  ],
  [
    "a balance that does not say what it contains",
    "UPDATE accounts SET posted = posted - 1 WHERE asset = 'HUGE'",
    /HUGE: posted against its newest posting is \d+, not \d+$/,
  ],
  [
    "a hold that was never posted",
    `UPDATE accounts SET held = held - 1, available = available + 1 WHERE scope = ${inMode("live")}`,
    /held against the sum of its postings/,
  ],
  [
    "sums that overflow 64 bits",
    `UPDATE postings SET available = 9223372036854775807, funding = -9223372036854775807 WHERE kind = 'deposit'`,
    /available against the sum of its postings is \d+, not 1844674407370955\d{4}$/,
  ],
  ["a negative balance", "UPDATE accounts SET paid = -1", /CHECK constraint failed in accounts/],
  [
    "a deposit without a posting",
    "DELETE FROM postings WHERE kind = 'deposit'",
    /^deposit dep_\w+: has no posting$/,
  ],
  [
    "a deposit that was posted twice",
    `DROP INDEX postings_once; ${POSTING} WHERE kind = 'deposit' LIMIT 1`,
    /^deposit dep_\w+: has more than one posting$/,
  ],
  [
    "a deposit of another amount",
    "UPDATE deposits SET amount = amount + 1 WHERE reference = 'second'",
    /^deposit dep_\w+: its posting's available is 23, not 24$/,
  ],
  [
    "a deposit to another account",
    "UPDATE deposits SET account = account + 1 WHERE reference = 'second'",
    /^deposit dep_\w+: its posting's account is \d+, not \d+$/,
  ],
  [
    "a deposit that is gone",
    "DELETE FROM deposits WHERE reference = 'second'",
    /^deposit \d+: has a posting, but does not exist$/,
  ],
  [
    "a posting for no warrant",
    "UPDATE postings SET cause = 7777 WHERE position = (SELECT max(position) FROM postings WHERE kind = 'settlement')",
    /^the warrant at position 7777: has rows in postings, but does not exist$/,
  ],
  [
    "a posting of a kind that nobody knows",
    "INSERT INTO postings SELECT NULL, account, 'fee', rail, 4711, -1, 0, 1, 0, 0, 0, 0 FROM postings LIMIT 1; UPDATE accounts SET available = available - 1, paid = paid + 1, posted = (SELECT max(position) FROM postings) WHERE position = 1",
    /^posting \d+: its kind is fee$/,
  ],
  [
    "a deposit on a rail of the other mode",
    "UPDATE postings SET rail = 'sandbox_book' WHERE kind = 'deposit' AND rail = 'live_book'",
    /^posting \d+: its rail is sandbox_book, and its account's mode is live$/,
  ],
  [
    "an account of no scope",
    "INSERT INTO accounts VALUES (NULL, 7777, 'X', 0, 0, 0, 0, 0, NULL, 0, 0)",
    /^the scope at position 7777: has rows in accounts, but does not exist$/,
  ],
  [
    "a key of no scope",
    "INSERT INTO idempotency_keys (scope, key, fingerprint, holder, created_at) VALUES (7777, 'k', x'00', 'wrt_x', 0)",
    /^the scope at position 7777: has rows in idempotency_keys, but does not exist$/,
  ],
  [
    "a key in flight of no scope",
    "INSERT INTO idempotency_keys (scope, key, fingerprint, holder, created_at) VALUES (7777, 'k', x'00', 'wrt_x', 0)",
    /^idempotency key "k": is in flight, and wrt_x is neither/,
  ],
  [
    "a check for no warrant",
    "UPDATE checks SET warrant = 7777",
    /^the warrant at position 7777: has rows in checks, but does not exist$/,
  ],
  [
    "a count that is off",
    "UPDATE warrant_counts SET count = count + 1 WHERE state = 'frozen'",
    /^warrant counts of org_\w+, live, agt_\w+: 2 are counted as frozen, and there are 1$/,
  ],
  [
    "a count that is not there",
    "DELETE FROM warrant_counts WHERE state = 'expired'",
    /: 0 are counted as expired, and there are 1$/,
  ],
];

const MONEY_OF_WARRANTS: readonly Corruption[] = [
  [
    "a hold that is gone",
    `DELETE FROM postings WHERE ${posted("held", "hold")}`,
    /is held with 0 postings, not 1$/,
  ],
  [
    "a settlement that is gone",
    `DELETE FROM postings WHERE ${posted("released", "settlement")}`,
    /is released with 1 postings, not 2$/,
  ],
  [
    "a second settlement",
    `DROP INDEX postings_once; ${POSTING} WHERE ${posted("released", "settlement")}`,
    /is released with 3 postings, not 2$/,
  ],
  [
    "a settlement of what is not settled",
    `DROP INDEX postings_once; ${POSTING} WHERE ${posted("escalated", "hold")}; UPDATE postings SET kind = 'settlement', held = -held, available = -available WHERE position = (SELECT max(position) FROM postings)`,
    /is escalated with 2 postings, not 1$/,
  ],
  [
    "a hold of another amount",
    `UPDATE postings SET held = held + 1, available = available - 1 WHERE ${posted("held", "hold")}`,
    /: its hold's held is 101, not 100$/,
  ],
  [
    "a share that was rounded up",
    `UPDATE postings SET paid = paid + 1, available = available - 1 WHERE ${posted("partially_released", "settlement", "AND amount = 101")}`,
    /: its settlement's paid is 34, not 33$/,
  ],
  [
    "a hold that is called something else",
    `UPDATE postings SET kind = 'payout' WHERE ${posted("held", "hold")}`,
    /: its hold's kind is "payout", not "hold"$/,
  ],
  [
    "a sandbox settlement on a live rail",
    `UPDATE postings SET rail = 'live_book' WHERE kind = 'settlement' AND rail = 'sandbox_book'`,
    /: its settlement's rail is "live_book", not "sandbox_book"$/,
  ],
  [
    "a hold from the account of another asset",
    `UPDATE postings SET account = ${accountIn("live", "HUGE")} WHERE ${posted("held", "hold")}`,
    /: its hold's account is \d+, not \d+$/,
  ],
  [
    "a warrant that is held from another organisation's account",
    `UPDATE warrants SET account = ${accountIn("sandbox", "USDC")} WHERE position = ${at("held")}`,
    /: its account's scope is \d+, not \d+$/,
  ],
  [
    "a settlement at another time",
    `UPDATE postings SET recorded_at = 1 WHERE ${posted("expired", "settlement")}`,
    /: its settlement's recorded_at is 1, not \d+$/,
  ],
  [
    "an amount that is no integer",
    `UPDATE warrants SET amount = 100.5 WHERE id = ${one("held")}`,
    /CHECK constraint failed in warrants/,
  ],
];

const WARRANTS: readonly Corruption[] = [
  [
    "another state",
    `UPDATE warrants SET state = 'held' WHERE id = ${one("escalated")}`,
    /: state against its trace is "held", not "escalated"$/,
  ],
  [
    "another version",
    `UPDATE warrants SET version = 9 WHERE id = ${one("held")}`,
    /: version against its trace is 9, not 1$/,
  ],
  [
    "another trace head",
    `UPDATE warrants SET trace_head = x'00' WHERE id = ${one("held", "AND policy IS NULL")}`,
    /: trace_head is "00", not "[0-9a-f]{64}"$/,
  ],
  [
    "another time of settlement",
    `UPDATE warrants SET settled_at = 1 WHERE id = ${one("refunded")}`,
    /: settled_at against its trace is 1, not \d+$/,
  ],
  [
    "another opening time",
    `UPDATE warrants SET opened_at = 1 WHERE id = ${one("held")}`,
    /: opened_at against its trace is 1, not \d+$/,
  ],
  [
    "a check that runs on a warrant that is held",
    `UPDATE warrants SET verifying_since = 1 WHERE id = ${one("held")}`,
    /^the file: CHECK constraint failed in warrants$/,
  ],
  [
    "another share",
    `UPDATE warrants SET released_bps = 5001 WHERE id = ${one("partially_released")}`,
    /: its trace entry \d: entry_hash is /,
  ],
  [
    "another amount",
    `UPDATE warrants SET amount = 99 WHERE id = ${one("held")}`,
    /: its trace entry 0: entry_hash is /,
  ],
  [
    "another amount, with a trace that agrees",
    (raw) => {
      raw.run(`UPDATE warrants SET amount = 99 WHERE position = ${at("disputed")}`);
      rechain(raw, "disputed");
    },
    /: its hold's held is 100, not 99$/,
  ],
  [
    "another payee in its terms",
    `UPDATE warrants SET payee = 'mallory' WHERE id = ${one("held")}`,
    /: its trace entry 0: entry_hash is /,
  ],
  [
    "another spec",
    `UPDATE warrants SET spec = '{"clauses":[{"kind":"http.status","equals":500}]}' WHERE id = ${one("held")}`,
    /: spec_hash is "[0-9a-f]{64}", not "[0-9a-f]{64}"$/,
  ],
  [
    "a spec that cannot be read",
    `UPDATE warrants SET spec = '{' WHERE id = ${one("held")}`,
    /^warrant wrt_\w+: cannot be read: /,
  ],
  [
    "other rules",
    `UPDATE warrants SET rules_hash = x'00' WHERE id = ${one("held", "AND policy IS NULL")}`,
    /: rules_hash without a policy is "00", not /,
  ],
  ["another version of its policy", "UPDATE policies SET version = 7", /: its trace entry 0: entry_hash is /],
  [
    "no such policy",
    `UPDATE warrants SET policy = 7777, rules_hash = NULL WHERE id = ${one("held")}`,
    /: there is no policy at position 7777$/,
  ],
  [
    "no such agent",
    `UPDATE warrants SET agent = 7777 WHERE id = ${one("held")}`,
    /: there is no agent at position 7777$/,
  ],
  [
    "an agent of another mode",
    "UPDATE agents SET mode = 'sandbox' WHERE mode = 'live' AND failure_budget = 100",
    /: its organisation and mode have no agent agt_\w+$/,
  ],
  [
    "another agent that opened it",
    `UPDATE warrants SET opened_by_agent = (SELECT position FROM agents WHERE status = 'killed') WHERE id = ${one("released", "AND opened_by_agent IS NOT NULL")}`,
    /: the agent that opened it, against its trace is "agt_\w+", not "agt_\w+"$/,
  ],
  [
    "another person who opened it",
    `UPDATE warrants SET opened_by_user = 'usr_none' WHERE id = ${one("released", "AND opened_by_agent IS NOT NULL")}`,
    /: the person who opened it, against its trace is "usr_none", not null$/,
  ],
  [
    "a session of another agent",
    "UPDATE spend_sessions SET agent_id = (SELECT id FROM agents WHERE status = 'killed')",
    /: its agent has no session ses_\w+$/,
  ],
  ["no such verifier", "DELETE FROM verifiers", /: there is no verifier at position \d+$/],
  ["no such scope", "DELETE FROM scopes WHERE mode = 'live'", /: there is no scope at position \d+$/],
  [
    "an escalation that is gone",
    `DELETE FROM escalations WHERE warrant_id = ${one("escalated")}`,
    /is escalated with 0 escalations/,
  ],
  [
    "an escalation of a warrant that waits for nobody",
    `UPDATE escalations SET warrant_id = ${one("held")} WHERE warrant_id = ${one("frozen")}`,
    /is held with 1 escalations that are not resolved$/,
  ],
  [
    "a dispute that the escalation does not know",
    `UPDATE escalations SET status = 'open' WHERE warrant_id = ${one("disputed")}`,
    /: its escalation esc_\w+: status is "open", not "disputed"$/,
  ],
  [
    "an escalation of another organisation",
    `UPDATE escalations SET mode = 'sandbox' WHERE warrant_id = ${one("escalated")}`,
    /: its escalation esc_\w+ is of another organisation or mode$/,
  ],
  [
    "an escalation by another check",
    `UPDATE escalations SET check_id = (SELECT id FROM checks WHERE warrant = ${at("released")}) WHERE warrant_id = ${one("escalated")}`,
    /: its escalation esc_\w+ names the check chk_\w+ of another warrant$/,
  ],
  [
    "an escalation with another score",
    `UPDATE escalations SET score = 9999 WHERE warrant_id = ${one("escalated")}`,
    /: its escalation esc_\w+: score against its check is 9999, not 0$/,
  ],
];

const TRACES: readonly Corruption[] = [
  [
    "a warrant below the first",
    `UPDATE warrants SET position = -1 WHERE id = ${one("held")}`,
    /^warrant wrt_\w+: has no trace$/,
  ],
  [
    "a warrant without a trace",
    `DELETE FROM trace WHERE warrant = ${at("held")}`,
    /^warrant wrt_\w+: has no trace$/,
  ],
  [
    "a trace without a warrant",
    `DELETE FROM warrants WHERE id = ${one("held")}`,
    /^the warrant at position \d+: has rows in trace, but does not exist$/,
  ],
  [
    "an entry that is gone",
    `DELETE FROM trace WHERE ${of("released", 1)}`,
    /: its trace entry 2: sequence is 2, not 1$/,
  ],
  [
    "an encoding that nobody knows",
    `UPDATE trace SET encoding = 99 WHERE ${of("released", 1)}`,
    /: its trace: cannot be read: .* encoding 99/,
  ],
  [
    "an entry hash that was changed",
    `UPDATE trace SET entry_hash = x'00' WHERE ${of("released", 2)}`,
    /: its trace entry 2: entry_hash is "00", not /,
  ],
  [
    "a move that was made by nobody who may",
    (raw) => {
      raw.run(`UPDATE trace SET actor_kind = 'agent', actor_id = 'key_x' WHERE ${of("refunded", 1)}`);
      rechain(raw, "refunded");
    },
    /: its trace entry 1: held → refunded is no legal move of agent$/,
  ],
  [
    "a warrant that the system opened",
    `UPDATE trace SET actor_kind = 'system', actor_id = NULL WHERE ${of("held", 0)}`,
    /: its trace entry 0: \(none\) → held is no legal move of system$/,
  ],
  [
    "a move from elsewhere",
    `UPDATE trace SET from_state = 'frozen' WHERE ${of("released", 1)}`,
    /: its trace entry 1: from is "frozen", not "held"$/,
  ],
  [
    "an event that is missing",
    `UPDATE trace SET event_id = NULL WHERE ${of("released", 2)}`,
    /: its trace entry 2: its event_id is null$/,
  ],
  [
    "an event where none fires",
    `UPDATE trace SET event_id = 'evt_x' WHERE ${of("escalated", 2)}`,
    /: its trace entry 2: its event_id is evt_x$/,
  ],
  [
    "an event that is no event's id",
    `UPDATE trace SET event_id = 'x' WHERE ${of("expired", 1)}`,
    /: its trace entry 1: its event_id is x$/,
  ],
  [
    "an entry at another time",
    `UPDATE trace SET recorded_at = recorded_at + 1 WHERE ${of("released", 1)}`,
    /: its trace entry 1: entry_hash is /,
  ],
  [
    "an entry of another actor",
    `UPDATE trace SET actor_id = 'usr_x' WHERE ${of("held", 0)}`,
    /: its trace entry 0: entry_hash is /,
  ],
  [
    "an entry that pins other schemas, with a trace that agrees",
    (raw) => {
      raw.run(`UPDATE trace SET schema_hashes = '{"none":"00"}' WHERE ${of("disputed", 0)}`);
      rechain(raw, "disputed");
    },
    /: its trace entry 0: schema_hashes is /,
  ],
  [
    "a check that was changed",
    "UPDATE checks SET source_url = 'http://other.example/'",
    /: its trace entry 2: entry_hash is /,
  ],
  ["a check with another score", "UPDATE checks SET score = 1", /: its trace entry 2: entry_hash is /],
  [
    "a check that is gone",
    `DELETE FROM checks WHERE warrant = ${at("released")}`,
    /: its trace entry 2: names the check chk_\w+, which is not there or was named before$/,
  ],
  [
    "a check that decided nothing",
    `UPDATE checks SET warrant = ${at("held")} WHERE warrant = ${at("released")}`,
    /: its check chk_\w+ is in no trace entry$/,
  ],
];

const DIRECTORY: readonly Corruption[] = [
  [
    "a policy that was edited",
    `UPDATE policies SET rules = '{"bands":[]}'`,
    /^policy pol_\w+: rules_hash is /,
  ],
  ["a policy that cannot be read", "UPDATE policies SET rules = ''", /^policy pol_\w+: cannot be read: /],
  ["a schema that was edited", "UPDATE schemas SET schema = 'true'", /^schema sch_\w+: schema_hash is /],
  [
    "a schema that was replaced with its hash",
    `UPDATE schemas SET schema = 'true', schema_hash = '${hashJson(true)}'`,
    /: its trace entry 0: schema_hashes is /,
  ],
  [
    "a session that spent more",
    "UPDATE spend_sessions SET amount_spent = amount_spent + 1",
    /^session ses_\w+: amount_spent against its warrants is \d+, not \d+$/,
  ],
  [
    "a session that held more",
    "UPDATE spend_sessions SET amount_held = amount_held + 1",
    /^session ses_\w+: amount_held against its warrants is \d+, not \d+$/,
  ],
  [
    "a running total that was changed",
    "UPDATE session_totals SET total = total + 1",
    /^session ses_\w+: its newest running total is \d+, not \d+$/,
  ],
  [
    "a session that opened fewer",
    "UPDATE spend_sessions SET warrant_count = warrant_count - 1",
    /^session ses_\w+: warrant_count against its warrants is \d+, not \d+$/,
  ],
  [
    "a key in flight of a warrant that is not verifying",
    `UPDATE idempotency_keys SET holder = ${one("held")} WHERE status IS NULL`,
    /^idempotency key "key-\d+": is in flight, and wrt_\w+ is neither a warrant being verified nor a purchase under way$/,
  ],
  [
    "a key in flight of nothing",
    "UPDATE idempotency_keys SET holder = NULL WHERE status IS NULL",
    /and null is neither a warrant being verified nor a purchase under way$/,
  ],
  [
    "an outcome that is no JSON",
    "UPDATE idempotency_keys SET body = 'x', warrant = NULL, version = NULL, encoding = NULL WHERE status IS NOT NULL",
    /^idempotency key "key-\d+": cannot be read: /,
  ],
  [
    "an answer in a form that nobody knows",
    "UPDATE idempotency_keys SET encoding = 7 WHERE encoding IS NOT NULL",
    /^idempotency key "key-\d+": its answer is written by encoding 7, which is unknown$/,
  ],
  [
    "an answer that did not make its warrant, and says so",
    "UPDATE idempotency_keys SET status = 201 WHERE version > 1",
    /^idempotency key "key-\d+": its status is 201: created is true, not false$/,
  ],
  [
    "an answer that is a later version than there is",
    "UPDATE idempotency_keys SET version = 99 WHERE version IS NOT NULL",
    /^idempotency key "key-\d+": its answer is version 99 of a warrant that does not exist$/,
  ],
  [
    "an outcome that is no success",
    "UPDATE idempotency_keys SET status = 500 WHERE status IS NOT NULL",
    /^idempotency key "key-\d+": its status 500 is no success$/,
  ],
  [
    "a sandbox agent's key that is live",
    "UPDATE api_keys SET mode = 'live' WHERE mode = 'sandbox'",
    /^API key key_\w+: is not of the organisation and mode of its agent agt_\w+$/,
  ],
  [
    "a reference to nobody",
    "DELETE FROM agents WHERE failure_budget = 100",
    /^the references: row \d+ of \w+ refers to a row of agents that is not there$/,
  ],
  [
    "a reference from a table without a number of its own",
    "UPDATE escalations SET warrant_id = 'wrt_gone', status = 'resolved', resolved_at = 1",
    /^the references: row \d+ of escalations refers to a row of warrants that is not there$/,
  ],
  [
    "a warrant whose check nobody could repeat",
    "DELETE FROM idempotency_keys WHERE status IS NULL",
    /^warrant wrt_\w+: is being verified, and no idempotency key is in flight for it$/,
  ],
  [
    "a warrant whose check has a key of the other mode",
    "UPDATE idempotency_keys SET scope = (SELECT position FROM scopes WHERE position <> scope LIMIT 1) WHERE status IS NULL",
    /^warrant wrt_\w+: is being verified, and no idempotency key is in flight for it$/,
  ],
  [
    "a second instance",
    "INSERT INTO instances (id, chain_ids, version, oldest_writer, created_at) VALUES ('ins_2', '[]', '0.1.0', '0.1.0', 0)",
    /^the ledger: the number of its instances is 2, not 1$/,
  ],
  ["no instance", "DELETE FROM instances", /^the ledger: the number of its instances is 0, not 1$/],
  [
    "an organisation without a mode",
    "DELETE FROM scopes WHERE mode = 'sandbox'",
    /^organisation org_\w+: the modes of its scopes is "live", not "live, sandbox"$/,
  ],
];

describe.each([
  ["the money", MONEY],
  ["a warrant's money", MONEY_OF_WARRANTS],
  ["a warrant", WARRANTS],
  ["a trace", TRACES],
  ["the directory", DIRECTORY],
] as const)("what is wrong with %s is found", (_, corruptions) => {
  for (const corruption of corruptions) test(corruption[0], () => expectFound(folder, corruption));
});

describe("the audit itself", () => {
  test("says what it can of a file whose pages are damaged, and throws nothing", () => {
    const messages = withCopy(folder, ({ writer, readers }, file) => {
      writer.raw.run("PRAGMA wal_checkpoint(TRUNCATE)");
      const { size } = statSync(file);
      const handle = openSync(file, "r+");
      for (let page = 8; page < size / 4_096; page += 2)
        writeSync(handle, Buffer.alloc(4_096, 0xff), 0, 4_096, page * 4_096);
      return auditLedger(readers);
    });
    expect(messages.length).toBeGreaterThan(1);
    expect(messages.join("\n")).toMatch(/^the file: /m);
  });

  test("checks the CHECKs of a short file, or of every file where no limit is given", () => {
    withCopy(folder, ({ writer, readers }, file) => {
      writer.raw.run("UPDATE accounts SET paid = -1");
      const failedCheck = /^the file: CHECK constraint failed in accounts/m;
      const { size } = statSync(file);
      for (const bytesMax of [undefined, size])
        expect(
          auditFolder(dirname(file), bytesMax === undefined ? {} : { fileBytesMax: bytesMax }).join("\n"),
        ).toMatch(failedCheck);
      expect(auditFolder(dirname(file), { fileBytesMax: size - 1 }).join("\n")).not.toMatch(failedCheck);
      expect(auditLedger(readers).join("\n")).toMatch(failedCheck);
    });
  });

  test("checks the references of a file of any length", () => {
    withCopy(folder, ({ writer }, file) => {
      writer.raw.run("UPDATE users SET organisation_id = 'org_gone'");
      expect(auditFolder(dirname(file), { fileBytesMax: 0 }).join("\n")).toMatch(
        /^the references: row \d+ of users refers to a row of organisations that is not there$/m,
      );
    });
  });

  test("stops at a thousand messages, and leaves no transaction open", () => {
    withCopy(folder, ({ writer, readers }) => {
      writer.raw.run(
        `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
         INSERT INTO idempotency_keys (scope, key, fingerprint, holder, created_at) SELECT 1, 'stuck-' || i, x'00', i, 0 FROM n`,
      );
      expect(auditLedger(readers)).toHaveLength(1_000);
      expect(readers.raw.inTransaction).toBe(false);
      writer.raw.run("DELETE FROM idempotency_keys WHERE key LIKE 'stuck-%'");
      expect(auditLedger(readers)).toEqual([]);
    });
  });

  test("compares balances with the postings of the same moment", () => {
    withCopy(folder, ({ writer, readers }) => {
      const { raw } = readers;
      const query = raw.query.bind(raw);
      let wrote = false;
      raw.query = ((sql: string) => {
        if (sql.includes("FROM accounts") && !wrote) {
          wrote = true;
          writer.raw.run("UPDATE accounts SET available = available + 1, funding = funding - 1");
        }
        return query(sql);
      }) as typeof raw.query;
      expect(auditLedger(readers)).toEqual([]);
      expect(wrote).toBe(true);
      expect(auditLedger(readers).length).toBeGreaterThan(0);
    });
  });

  test("finds nothing wrong with what is posted between its slices", () => {
    withCopy(folder, ({ writer, readers }) => {
      const { raw } = readers;
      const run = raw.run.bind(raw);
      let posted = 0;
      raw.run = ((sql: string) => {
        if (sql === "BEGIN" && posted < 5) {
          posted++;
          writer.raw.run(
            `INSERT INTO postings SELECT NULL, account, kind, rail, ${-posted}, 5, 0, 0, -5, 0, 0, 0 FROM postings WHERE kind = 'deposit' LIMIT 1;
             UPDATE accounts SET available = available + 5, funding = funding - 5, posted = (SELECT max(position) FROM postings)
               WHERE position = (SELECT account FROM postings WHERE kind = 'deposit' LIMIT 1)`,
          );
        }
        return run(sql);
      }) as typeof raw.run;
      expect([...auditPostings(raw, unwatched, 4)]).toEqual([]);
      expect(posted).toBe(5);
      expect([...auditDeposits(raw, unwatched)]).toHaveLength(5);
    });
  });

  test("reports how many rows it has read, of how many", () => {
    withCopy(folder, ({ readers }) => {
      const reported: (readonly [number, number])[] = [];
      expect(auditLedger(readers, { onProgress: (...figures) => reported.push(figures) })).toEqual([]);
      const [, total = 0] = reported[0] ?? [];
      const [done = 0] = reported.at(-1) ?? [];
      const { count = 0n } =
        readers.raw.query<{ count: bigint }, []>("SELECT count(*) AS count FROM postings").get() ?? {};
      // What is in the last slice of a table is reported with a few parts only.
      expect(done).toBeGreaterThanOrEqual(Number(count));
      expect(total).toBeGreaterThan(done);
      expect(reported).toEqual(reported.map(([at]) => [at, total]));
      expect(reported.map(([at]) => at)).toEqual(
        reported.map(([at]) => at).toSorted((one, other) => one - other),
      );
    });
  });

  test("reports each slice that it has left behind", () => {
    withCopy(folder, ({ readers: { raw } }) => {
      const reported: number[] = [];
      const slices = [...slicesOf(raw, "warrants", BY_POSITION, 3, (rows) => reported.push(rows))];
      expect(slices.length).toBeGreaterThan(3);
      expect(reported).toEqual(slices.slice(1).map(() => 3));
    });
  });

  test("finds the same in slices of any size", () => {
    withCopy(folder, ({ writer, readers: { raw } }) => {
      writer.raw.run(
        `UPDATE accounts SET held = held + 1, funding = funding - 1;
         UPDATE spend_sessions SET amount_spent = amount_spent + 1;
         UPDATE postings SET kind = 'fee ' || position WHERE position % 5 = 0`,
      );
      const found = [...auditPostings(raw, unwatched)];
      expect(found.length).toBeGreaterThan(5);
      for (const size of [1, 2, 7]) expect([...auditPostings(raw, unwatched, size)]).toEqual(found);
    });
  });

  test("finds the same in two threads, and reports how far both are", async () => {
    const copy = mkdtempSync(join(tmpdir(), "holdfast-audit-threads-"));
    try {
      withCopy(folder, ({ writer }) => {
        writer.raw.run(
          `UPDATE warrants SET amount = amount + 1 WHERE state = 'released';
           UPDATE agents SET name = 'another'`,
        );
        writer.raw.run(`VACUUM INTO '${ledgerFile(copy)}'`);
      });
      const found = auditFolder(copy);
      expect(found.some((message) => message.includes("amount"))).toBeTrue();
      expect(found.some((message) => message.startsWith("agent"))).toBeTrue();
      const reported: number[] = [];
      const together = await auditInThreads(copy, {
        onProgress(done, total) {
          reported.push(done);
          expect(done).toBeLessThanOrEqual(total);
        },
      });
      expect(together).toEqual(found);
      expect(reported).toEqual(reported.toSorted((one, other) => one - other));
      expect(reported.length).toBeGreaterThan(1);
    } finally {
      rmSync(copy, { recursive: true });
    }
  });

  test("is not made where a thread fails", () => {
    expect(auditInThreads("/nowhere/at/all", {})).rejects.toThrow("unable to open database file");
  });
});
