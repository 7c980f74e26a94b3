/** What the tables on PostgreSQL refuse: the statements that SQLite's refuse, and what only batches meet. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ALL_BEHIND, newTables, WRONG } from "../support/guard-cases.ts";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import { tableGuards } from "../support/table-guards.ts";
import { AMONG_OTHERS, aWarrant, held, ofPayout, POSTINGS, refunded } from "./batch-statements.ts";
import { createConnections } from "./connections.ts";
import { createGuardedLedger, type GuardedLedger } from "./guarded-ledger.ts";

const TEST_MS = 120_000;

/** CHECKs of SQLite that only say that a column holds whole numbers. Here its type does. */
const OF_TYPES: readonly string[] = ["accounts_integers", "payees_integers"];

const lite = newTables();

let postgres: Postgres;
let ledger: GuardedLedger;
const { connectTo, closeAll } = createConnections(() => postgres.port);

beforeAll(async () => {
  postgres = await startPostgres();
  ledger = await createGuardedLedger(connectTo(await postgres.createDatabase()));
}, TEST_MS);
afterAll(async () => {
  await closeAll();
  await postgres.close();
}, TEST_MS);

const messageOn: GuardedLedger["messageOn"] = (...statements) => ledger.messageOn(...statements);
const removalOf = (name: string): Promise<string> => ledger.removalOf(name);

describe("raw SQL of a buggy caller", () => {
  for (const [name, sql, problem, here = problem] of WRONG)
    if (here !== null)
      test(`${name} is refused`, async () => {
        expect(await messageOn(sql())).toMatch(here);
      });

  for (const [name, trigger, sql, problem, here = problem] of ALL_BEHIND)
    if (here !== null)
      test(`${name} is refused without ${trigger} too`, async () => {
        expect(await messageOn(await removalOf(trigger), sql())).toMatch(here);
      });

  type Refused = {
    readonly sql: string;
    readonly problem: RegExp;
    readonly prepared: readonly string[];
    readonly message: string;
  };
  let refusedOnes: readonly Refused[] | null = null;
  async function refused(): Promise<readonly Refused[]> {
    if (refusedOnes !== null) return refusedOnes;
    const all: Refused[] = [];
    for (const [, sql, problem, here = problem] of WRONG)
      if (here !== null)
        all.push({ sql: sql(), problem: here, prepared: [], message: await messageOn(sql()) });
    for (const [, trigger, sql, problem, here = problem] of ALL_BEHIND) {
      if (here === null) continue;
      const prepared = [await removalOf(trigger)];
      all.push({ sql: sql(), problem: here, prepared, message: await messageOn(...prepared, sql()) });
    }
    refusedOnes = all;
    return all;
  }

  for (const { name, refusedWith, remove } of tableGuards(lite))
    if (!OF_TYPES.includes(name))
      test(`one of these tests fails without ${name}`, async () => {
        const meets = (await refused()).filter(({ message }) => refusedWith(message));
        expect(meets.length).toBeGreaterThan(0);
        if (remove === null) return;
        const removal = await removalOf(name);
        for (const { sql, problem, prepared } of meets)
          if (!problem.test(await messageOn(...prepared, removal, sql))) return;
        throw new Error(`they are refused without ${name} too`);
      });
});

test("no table is emptied at once whose rows are kept", async () => {
  const kept = lite
    .query<{ name: string }, []>(
      `SELECT DISTINCT tbl_name AS name FROM sqlite_schema WHERE type = 'trigger' AND sql LIKE '% BEFORE DELETE ON %'`,
    )
    .all();
  expect(kept.length).toBeGreaterThan(20);
  for (const { name } of kept) {
    const message = await messageOn(`TRUNCATE ${name} CASCADE`);
    expect(`${name}: ${message}`).toMatch(/ (are|is) (kept|append-only|history)$|the log only grows$/);
  }
});

/** The rows of a batch come by statements of many rows. What such a batch may say is taken, and what SQLite would refuse of it is refused. */
describe("a batch", () => {
  const refund =
    "UPDATE warrants SET state = 'refunded', version = version + 1, settled_at = 1 WHERE id = 'wrt_bare'";

  test("may open and settle a warrant, in this order", async () => {
    expect(await messageOn(refund, `${POSTINGS} ${held} ${aWarrant} UNION ALL ${refunded} ${aWarrant}`)).toBe(
      "",
    );
    expect(await messageOn(refund, `${POSTINGS} ${held} ${aWarrant}`)).toMatch(
      /a hold is the amount of a warrant/,
    );
    expect(
      await messageOn(refund, `${POSTINGS} ${refunded} ${aWarrant} UNION ALL ${held} ${aWarrant}`),
    ).toMatch(/a hold is the amount of a warrant/);
    expect(
      await messageOn(refund, `${POSTINGS} ${refunded} ${aWarrant}`, `${POSTINGS} ${held} ${aWarrant}`),
    ).toMatch(/a hold is the amount of a warrant/);
  });

  const begin = ofPayout("submitted", "payout_submitted", "-amount", "amount");
  const pay = ofPayout("submitted", "payout_paid", "0", "-amount");
  const comeBack = ofPayout("submitted", "payout_failed", "amount", "0");
  const end = (set: string) =>
    `UPDATE payouts SET ${set}, version = version + 1, ended_at = 1 WHERE id = 'pay_submitted'`;
  const paid = end("status = 'paid', reference = 'r'");
  const failed = end("status = 'failed', reason = 'x'");

  test("may say that a payout was paid and came back", async () => {
    const moves = `${POSTINGS} ${begin} UNION ALL ${pay} UNION ALL ${comeBack}`;
    expect(await messageOn(paid, failed, moves)).toBe("");
    // Not without what came after it, nor in another order.
    for (const wrong of [
      `${POSTINGS} ${begin} UNION ALL ${pay}`,
      `${POSTINGS} ${begin} UNION ALL ${comeBack} UNION ALL ${pay}`,
      `${POSTINGS} ${begin} UNION ALL ${comeBack}`,
    ])
      expect(await messageOn(paid, failed, wrong)).toMatch(/a payout is posted as it says/);
    expect(await messageOn(failed, `${POSTINGS} ${begin}`)).toMatch(/a payout is posted as it says/);
  });

  const leaves = (pairs: string) =>
    `UPDATE trace SET leaf_index = given.leaf FROM (VALUES ${pairs}) AS given (at, leaf) WHERE position = given.at`;

  test("may give leaves in any order, without gaps, and a row of another table the next", async () => {
    expect(await messageOn(leaves("(3, 5), (4, 3), (5, 4)"))).toBe("");
    expect(
      await messageOn(
        leaves("(3, 3)"),
        "UPDATE solvency_statements SET leaf_index = 4 WHERE number = 2",
        leaves("(4, 5)"),
      ),
    ).toBe("");
    for (const wrong of ["(3, 5), (4, 3)", "(3, 4), (4, 5)", "(3, 3), (4, NULL)", "(3, 2), (4, 3)"])
      expect(await messageOn(leaves(wrong))).toBe("an entry becomes the next leaf of the log, once");
    // No statement finds a row: nothing is wrong.
    expect(await messageOn(leaves("(7777, 3)"))).toBe("");
  });

  test("gives no leaf before one that was there, also where one is missing", async () => {
    const withoutGuard = (...statements: readonly string[]) => [
      "ALTER TABLE trace DISABLE TRIGGER USER",
      ...statements,
      "ALTER TABLE trace ENABLE TRIGGER USER",
    ];
    const missing = withoutGuard(leaves("(3, 3), (4, 5)"));
    expect(await messageOn(...missing, leaves("(5, 6)"))).toBe("");
    for (const wrong of ["(5, 4)", "(5, 4), (6, 6)", "(5, 7)"])
      expect(await messageOn(...missing, leaves(wrong))).toBe(
        "an entry becomes the next leaf of the log, once",
      );
    // The leaf before the one that is missing is a statement's.
    expect(await messageOn(...withoutGuard(leaves("(4, 4)")), leaves("(3, 3)"))).toBe(
      "an entry becomes the next leaf of the log, once",
    );
    const none = withoutGuard("UPDATE trace SET leaf_index = NULL");
    expect(await messageOn(...none, leaves("(1, 0)"))).toBe(
      "an entry becomes the next leaf of the log, once",
    );
  });

  test("may give leaves to many statements of solvency", async () => {
    const statements = [3, 4].map(
      (number) =>
        `INSERT INTO solvency_statements VALUES (${number}, 'x', zeroblob(32), randomblob(32), NULL, NULL)`,
    );
    const give = (leaf: string) => `UPDATE solvency_statements SET leaf_index = ${leaf} WHERE number > 1`;
    expect(await messageOn(...statements, give("7 - number"))).toBe("");
    for (const wrong of ["8 - number", "number * 2 - 1", "CASE number WHEN 2 THEN 3 ELSE number - 2 END"])
      expect(await messageOn(...statements, give(wrong))).toMatch(
        /a statement becomes the next leaf of the log, once|UNIQUE constraint failed: solvency_statements.leaf_index/,
      );
  });

  test("may hold in a session more than once, and not before", async () => {
    const hold = (...ats: readonly number[]) =>
      `INSERT INTO session_totals (session, held_at, total) SELECT session, latest + at, 1
       FROM (SELECT session, max(held_at) AS latest FROM session_totals GROUP BY session LIMIT 1) AS held, unnest('{${ats}}'::int8[]) AS at`;
    const again = (...ats: readonly number[]) =>
      `${hold(...ats)} ON CONFLICT (session, held_at) DO UPDATE SET total = excluded.total`;
    expect(await messageOn(hold(2, 1))).toBe("");
    expect(await messageOn(hold(1), again(0), again(1, 0))).toBe("");
    for (const wrong of [
      [hold(-1)],
      [hold(2, -1)],
      [hold(2), hold(-1)],
      // Of a time that is there, the insert is an update.
      [again(2), again(1), again(-2)],
    ])
      expect(await messageOn(...wrong)).toBe("what a session held is history");
  });

  test("leaves a delivery that is there to its endpoint, and looks at one that is not", async () => {
    const put = (id: string) =>
      `INSERT INTO webhook_deliveries SELECT (json_populate_record(one, '{"id": "${id}", "mode": "sandbox", "attempts": 1, "rowid": null}')).*
       FROM webhook_deliveries AS one WHERE id = 'del_pending' ON CONFLICT (id) DO UPDATE SET attempts = excluded.attempts`;
    expect(await messageOn(put("del_pending"))).toBe("");
    expect(await messageOn(put("del_new"))).toBe("a delivery has its endpoint's organisation and mode");
  });

  test.each(AMONG_OTHERS)("is refused for %s among others", async (_, [right, withWrong], problem) => {
    expect(await messageOn(right)).toBe("");
    expect(await messageOn(withWrong)).toBe(problem);
  });

  test("may move many balances at once, and each is the sum of its postings", async () => {
    const move = `UPDATE accounts SET available = accounts.available - moved.amount, held = accounts.held + moved.amount, posted = moved.posted
       FROM (SELECT account, max(position) AS posted, sum(held) AS amount, min(account) OVER () AS least FROM postings
         WHERE position > (SELECT max(posted) FROM accounts) GROUP BY account) AS moved
       WHERE position = account`;
    const holdAll = `${POSTINGS} ${held} ${aWarrant}`;
    const holdOther = `${POSTINGS} ${held.replace("live_book", "sandbox_book")} FROM warrants WHERE id = 'wrt_sandbox'`;
    expect(await messageOn(holdAll, holdOther, move)).toBe("");
    const more = "(least = account)::int";
    const oneTooMuch = move
      .replace("SET ", `SET funding = accounts.funding - ${more}, `)
      .replace("= accounts.available", `= accounts.available + ${more}`);
    expect(await messageOn(holdAll, holdOther, oneTooMuch)).toBe("a balance is the sum of its postings");
  });

  test("may record corrections of a deposit after one another", async () => {
    const correct = (...steps: readonly (readonly [before: number, after: number])[]) =>
      `INSERT INTO corrections (id, account, deposit, amount_before, amount_after, reason, status, created_at)
       SELECT 'cor_' || after, account, position, before, after, 'x', 'recorded', 0 FROM deposits,
         (VALUES ${steps.map(([before, after]) => `(${before}, ${after})`).join()}) AS step (before, after)
       WHERE id = 'dep_bare'`;
    expect(await messageOn(correct([20, 19], [19, 18]))).toBe("");
    expect(await messageOn(correct([20, 19], [20, 18]))).toBe(
      "a correction begins with what its deposit counts for",
    );
  });

  test("with an organisation has its two scopes, and no more where it is written again", async () => {
    const organisation = `INSERT INTO organisations (id, name, kill_switch, created_at) VALUES ('org_new', 'x', 0, 0)
      ON CONFLICT (id) DO UPDATE SET name = excluded.name`;
    const isTwo = "SELECT 1 / (count(*) = 2)::int FROM scopes WHERE organisation_id = 'org_new'";
    expect(await messageOn(organisation, isTwo, organisation, isTwo)).toBe("");
  });
});
