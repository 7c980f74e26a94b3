import type { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { canonicalJson, hashJson, sha256 } from "../../src/core/canonical.ts";
import { entryHashOf } from "../../src/core/trace.ts";
import { STATES } from "../../src/core/warrant.ts";
import { auditLedger } from "../../src/store/sqlite/audit.ts";
import { createTestContext } from "../support/context.ts";
import { type Corruption, expectFound, withCopy } from "../support/corrupted.ts";
import { buildGoodLedger, HUGE } from "../support/good-ledger.ts";
import { createCaller, createStage, open, SCRIPTED, verify, warrantIn } from "../support/stage.ts";

/** A ledger with a warrant in every state, closed while a check was running; each corruption works on a copy. */
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-audit-"));
  const never = new Promise<never>(() => {});
  const ctx = createTestContext({
    ...SCRIPTED,
    fetchEvidence: (url) => (url.includes("hang") ? never : SCRIPTED.fetchEvidence(url)),
  });
  await buildGoodLedger(ctx);
  const stage = await createStage(ctx);
  const caller = await createCaller(stage);
  const checking = warrantIn(await open(stage, caller)).id;
  void verify(stage, caller, checking, ["hang" as never]);
  await Bun.sleep(5);
  await ctx.store.close();
  cpSync(ctx.folder, folder, { recursive: true });
  rmSync(ctx.folder, { recursive: true });
});

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
const of = (state: string, sequence: number) => `warrant_id = ${one(state)} AND sequence = ${sequence}`;

/** Rewrites one trace entry's payload and every hash that follows from it: only what the payload says is wrong then. */
function rewrite(raw: Database, where: string, mend: (payload: Record<string, unknown>) => object): void {
  const entry = raw
    .query<{ warrant_id: string; sequence: bigint; payload: string }, []>(
      `SELECT * FROM trace WHERE ${where}`,
    )
    .get();
  if (!entry) throw new Error(`nothing to rewrite: ${where}`);
  const payload = canonicalJson(mend(JSON.parse(entry.payload) as Record<string, unknown>));
  raw
    .query("UPDATE trace SET payload = ?, payload_hash = ? WHERE warrant_id = ? AND sequence = ?")
    .run(payload, sha256(payload), entry.warrant_id, entry.sequence);
  rechain(raw, entry.warrant_id);
}

function rechain(raw: Database, warrantId: string): void {
  let previous: string | null = null;
  for (const { sequence, payload_hash: payloadHash } of raw
    .query<{ sequence: bigint; payload_hash: string }, [string]>(
      "SELECT sequence, payload_hash FROM trace WHERE warrant_id = ? ORDER BY sequence",
    )
    .all(warrantId)) {
    const entryHash = entryHashOf({ warrantId, sequence: Number(sequence), previous, payloadHash });
    raw
      .query("UPDATE trace SET previous = ?, entry_hash = ? WHERE warrant_id = ? AND sequence = ?")
      .run(previous, entryHash, warrantId, sequence);
    previous = entryHash;
  }
  raw.query("UPDATE warrants SET trace_head = ? WHERE id = ?").run(previous, warrantId);
}

const POSTING =
  "INSERT INTO postings SELECT NULL, organisation_id, mode, rail, asset, warrant_id, deposit_id, available, held, paid, funding, payee, recorded_at FROM postings";

const BOOKS: readonly Corruption[] = [
  [
    "a balance that is not the sum of its postings",
    "UPDATE balances SET available = available + 1, funding = funding - 1 WHERE asset = 'USDC'",
    /^the balance of .*: available against the sum of its postings is 999\d\d\d, not 999\d\d\d$/,
  ],
  [
    "one unit too many above 2^53",
    "UPDATE balances SET held = held + 1, funding = funding - 1 WHERE asset = 'HUGE'",
    new RegExp(`held against the sum of the unsettled warrants is ${HUGE - 1n}, not ${HUGE - 2n}$`),
  ],
  ["a balance that is gone", "DELETE FROM balances WHERE asset = 'HUGE'", /HUGE: is not there, though/],
  [
    "a hold that the books do not have",
    "UPDATE balances SET held = held - 1, available = available + 1 WHERE mode = 'live'",
    /held against the sum of the unsettled warrants/,
  ],
  [
    "sums that overflow 64 bits",
    `UPDATE postings SET available = 9223372036854775807, funding = -9223372036854775807 WHERE deposit_id IS NOT NULL`,
    /available against the sum of its postings is \d+, not 1844674407370955\d{4}$/,
  ],
  ["a negative balance", "UPDATE balances SET paid = -1", /CHECK constraint failed in balances/],
  [
    "a deposit without a posting",
    "DELETE FROM postings WHERE deposit_id IS NOT NULL",
    /^deposit dep_\w+: has no posting$/,
  ],
  [
    "a deposit that was posted twice",
    `DROP INDEX postings_one_of_a_deposit; ${POSTING} WHERE deposit_id IS NOT NULL LIMIT 1`,
    /^deposit dep_\w+: has more than one posting$/,
  ],
  [
    "a deposit of another amount",
    "UPDATE deposits SET amount = amount + 1 WHERE reference = 'second'",
    /^deposit dep_\w+: its posting's available is 23, not 24$/,
  ],
  [
    "a deposit of another mode",
    "UPDATE deposits SET mode = 'sandbox' WHERE reference = 'second'",
    /^deposit dep_\w+: its posting's organisation, mode, asset is "org_\w+, live, USDC", not/,
  ],
  [
    "a deposit that is gone",
    "DELETE FROM deposits WHERE reference = 'second'",
    /^deposit dep_\w+: has a posting, and is not/,
  ],
  [
    "a posting for no warrant",
    `${POSTING} WHERE warrant_id IS NOT NULL LIMIT 1; UPDATE postings SET warrant_id = 'wrt_none' WHERE id = (SELECT max(id) FROM postings)`,
    /^warrant wrt_none: has rows in postings, and is not there$/,
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
    `DELETE FROM postings WHERE warrant_id = ${one("held")}`,
    /is held with 0 postings, not 1$/,
  ],
  [
    "a settlement that is gone",
    `DELETE FROM postings WHERE warrant_id = ${one("released")} AND held < 0`,
    /is released with 1 postings, not 2$/,
  ],
  [
    "a second settlement",
    `${POSTING} WHERE warrant_id = ${one("released")} AND held < 0`,
    /is released with 3 or more postings, not 2$/,
  ],
  [
    "a settlement of what is not settled",
    `${POSTING} WHERE warrant_id = ${one("escalated")}; UPDATE postings SET held = -held, available = -available WHERE id = (SELECT max(id) FROM postings)`,
    /is escalated with 2 postings, not 1$/,
  ],
  [
    "a hold of another amount",
    `UPDATE postings SET held = held + 1, available = available - 1 WHERE warrant_id = ${one("held")}`,
    /: its hold's held is 101, not 100$/,
  ],
  [
    "a share that was rounded up",
    `UPDATE postings SET paid = paid + 1, available = available - 1 WHERE warrant_id = ${one("partially_released", "AND amount = 101")} AND held < 0`,
    /: its settlement's paid is 34, not 33$/,
  ],
  [
    "another payee",
    `UPDATE postings SET payee = 'mallory' WHERE warrant_id = ${one("released")} AND held < 0`,
    /: its settlement's payee is "mallory", not "acme"$/,
  ],
  [
    "a sandbox settlement on a live rail",
    "UPDATE postings SET rail = 'live_book' WHERE mode = 'sandbox' AND held < 0",
    /: its settlement's rail is "live_book", not "sandbox_book"$/,
  ],
  [
    "a hold on the books of another asset",
    `UPDATE postings SET asset = 'HUGE' WHERE warrant_id = ${one("held")}`,
    /: its hold's asset is "HUGE", not "USDC"$/,
  ],
  [
    "a hold on the books of another organisation",
    `UPDATE postings SET organisation_id = (SELECT organisation_id FROM warrants WHERE mode = 'sandbox') WHERE warrant_id = ${one("held")}`,
    /: its hold's organisation is "org_\w+", not "org_\w+"$/,
  ],
  [
    "a hold on the books of the other mode",
    `UPDATE postings SET mode = 'sandbox' WHERE warrant_id = ${one("expired")}`,
    /: its hold's mode is "sandbox", not "live"$/,
  ],
  [
    "a settlement at another time",
    `UPDATE postings SET recorded_at = 1 WHERE warrant_id = ${one("expired")} AND held < 0`,
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
    `UPDATE warrants SET trace_head = '00' WHERE id = ${one("held")}`,
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
    /: released_bps in its payload is "\d+", not "5001"$/,
  ],
  [
    "another amount",
    `UPDATE warrants SET amount = 99 WHERE id = ${one("held")}`,
    /: amount in its payload is "\\"100\\"", not "\\"99\\""$/,
  ],
  [
    "another payee in its terms",
    `UPDATE warrants SET payee = 'mallory' WHERE id = ${one("held")}`,
    /: payee in its payload is .*acme.*, not .*mallory/,
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
    `UPDATE warrants SET rules_hash = '00' WHERE id = ${one("held")}`,
    /: rules_hash against its policy is "00", not /,
  ],
  [
    "another policy version",
    `UPDATE warrants SET policy_version = 7 WHERE id = ${one("expired")}`,
    /: policy_version is 7, not 1$/,
  ],
  [
    "no such policy",
    `UPDATE warrants SET policy_id = 'pol_none' WHERE id = ${one("held")}`,
    /: its organisation has no policy pol_none$/,
  ],
  [
    "no such agent",
    `UPDATE warrants SET agent_id = 'agt_none' WHERE id = ${one("held")}`,
    /: its organisation and mode have no agent agt_none$/,
  ],
  [
    "an agent of another world",
    "UPDATE agents SET mode = 'sandbox' WHERE mode = 'live' AND failure_budget = 100",
    /: its organisation and mode have no agent agt_\w+$/,
  ],
  [
    "a session of another agent",
    "UPDATE spend_sessions SET agent_id = (SELECT id FROM agents WHERE status = 'killed')",
    /: its agent has no session ses_\w+$/,
  ],
  ["no such verifier", "DELETE FROM verifiers", /: its organisation has no verifier vrf_\w+$/],
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
    `UPDATE escalations SET check_id = (SELECT id FROM checks WHERE warrant_id = ${one("released")}) WHERE warrant_id = ${one("escalated")}`,
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
    "a warrant without a trace",
    `DELETE FROM trace WHERE warrant_id = ${one("held")}`,
    /^warrant wrt_\w+: has no trace$/,
  ],
  [
    "a trace without a warrant",
    `DELETE FROM warrants WHERE id = ${one("held")}`,
    /^warrant wrt_\w+: has rows in trace, and is not there$/,
  ],
  [
    "an entry that is gone",
    `DELETE FROM trace WHERE ${of("released", 1)}`,
    /: its trace entry 2: sequence is 2, not 1$/,
  ],
  [
    "a link to another entry",
    `UPDATE trace SET previous = '00' WHERE ${of("released", 1)}`,
    /: its trace entry 1: previous is "00", not /,
  ],
  [
    "a payload that was changed",
    `UPDATE trace SET payload = '{}' WHERE ${of("released", 1)}`,
    /: its trace entry 1: payload_hash is /,
  ],
  [
    "a payload that cannot be read",
    `UPDATE trace SET payload = '{' WHERE ${of("released", 1)}`,
    /: its trace: cannot be read: /,
  ],
  [
    "an entry hash that was changed",
    `UPDATE trace SET entry_hash = '00' WHERE ${of("released", 2)}`,
    /: its trace entry 2: entry_hash is "00", not /,
  ],
  [
    "a chain that was rewritten with another amount",
    (raw) => rewrite(raw, of("released", 0), (payload) => ({ ...payload, amount: "1" })),
    /: its trace entry 0: amount in its payload is "\\"1\\"", not /,
  ],
  [
    "a chain that was rewritten with another version",
    (raw) => rewrite(raw, of("released", 1), (payload) => ({ ...payload, version: 9 })),
    /: its trace entry 1: version in its payload is "9", not "2"$/,
  ],
  [
    "a payload with a field too many",
    (raw) => rewrite(raw, of("released", 1), (payload) => ({ ...payload, memo: "x" })),
    /: memo in its payload is "\\"x\\"", not missing$/,
  ],
  [
    "a payload with a field too few",
    (raw) => rewrite(raw, of("released", 0), ({ schema_hashes: _, ...payload }) => payload),
    /: schema_hashes in its payload is missing, not /,
  ],
  [
    "a payload that is not canonical",
    (raw) => {
      const { id, payload } = raw
        .query<{ id: string; payload: string }, []>(
          `SELECT warrant_id AS id, payload FROM trace WHERE ${of("held", 0)}`,
        )
        .get() as { id: string; payload: string };
      raw
        .query("UPDATE trace SET payload = ?, payload_hash = ? WHERE warrant_id = ?")
        .run(` ${payload}`, sha256(` ${payload}`), id);
      rechain(raw, id);
    },
    /: its trace entry 0: its payload is not canonical JSON$/,
  ],
  [
    "a move that was made by nobody who may",
    (raw) => {
      raw.run(`UPDATE trace SET actor_kind = 'agent', actor_id = 'key_x' WHERE ${of("refunded", 1)}`);
      rewrite(raw, of("refunded", 1), (payload) => ({ ...payload, actor: { kind: "agent", id: "key_x" } }));
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
    `UPDATE trace SET event_id = NULL, event_type = NULL WHERE ${of("released", 2)}`,
    /: event_type is null, not "warrant.released"$/,
  ],
  [
    "an event of another type",
    `UPDATE trace SET event_type = 'warrant.opened' WHERE ${of("expired", 1)}`,
    /: event_type is "warrant.opened", not "warrant.refunded"$/,
  ],
  [
    "an event that is no event's id",
    `UPDATE trace SET event_id = 'x' WHERE ${of("expired", 1)}`,
    /: its trace entry 1: its event_id is x$/,
  ],
  [
    "rules that the entry did not run under",
    `UPDATE trace SET rules_hash = '00' WHERE ${of("held", 0)}`,
    /: its trace entry 0: rules_hash is "00", not /,
  ],
  [
    "a check that was changed",
    "UPDATE checks SET source_url = 'http://other.example/'",
    /: check_hash in its payload is /,
  ],
  ["a check with another score", "UPDATE checks SET score = 1", /: score in its payload is "\d+", not "1"$/],
  [
    "a check that is gone",
    `DELETE FROM checks WHERE warrant_id = ${one("released")}`,
    /: its trace entry 2: names the check chk_\w+, which is not there or was named before$/,
  ],
  [
    "a check that decided nothing",
    `UPDATE checks SET warrant_id = ${one("held")} WHERE warrant_id = ${one("released")}`,
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
    /: its trace entry 0: schema_hashes in its payload is /,
  ],
  [
    "a session that spent more",
    "UPDATE spend_sessions SET amount_spent = amount_spent + 1",
    /^session ses_\w+: amount_spent against its warrants is \d+, not \d+$/,
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
    "UPDATE idempotency_keys SET body = 'x' WHERE status IS NOT NULL",
    /^idempotency key "key-\d+": cannot be read: /,
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
    /^the file: row \d+ of \w+ refers to a row of agents that is not there$/,
  ],
];

describe.each([
  ["the books", BOOKS],
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

  test("stops at a thousand messages, and leaves no transaction open", () => {
    withCopy(folder, ({ writer, readers }) => {
      writer.raw.run(
        `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
         INSERT INTO idempotency_keys SELECT (SELECT id FROM organisations LIMIT 1), 'live', 'stuck-' || i, 'f', i, NULL, NULL, NULL, 0 FROM n`,
      );
      expect(auditLedger(readers)).toHaveLength(1_000);
      expect(readers.raw.inTransaction).toBe(false);
      writer.raw.run("DELETE FROM idempotency_keys WHERE key LIKE 'stuck-%'");
      expect(auditLedger(readers)).toEqual([]);
    });
  });

  test("sees one moment: what is written while it reads waits for the next one", () => {
    withCopy(folder, ({ writer, readers }) => {
      const { raw } = readers;
      const query = raw.query.bind(raw);
      let wrote = false;
      raw.query = ((sql: string) => {
        if (sql.includes("FROM postings") && !wrote) {
          wrote = true;
          writer.raw.run("UPDATE balances SET available = available + 1, funding = funding - 1");
        }
        return query(sql);
      }) as typeof raw.query;
      expect(auditLedger(readers)).toEqual([]);
      expect(wrote).toBe(true);
      expect(auditLedger(readers).length).toBeGreaterThan(0);
    });
  });
});
