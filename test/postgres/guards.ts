/** What the tables on PostgreSQL refuse: the statements that SQLite's refuse, and what only batches meet. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ReservedSQL } from "bun";
import { migratePostgres } from "../../src/store/postgres/migrate.ts";
import { ledgerFile } from "../../src/store/sqlite/ledger-file.ts";
import { connect } from "../../src/store/sqlite/open.ts";
import { createTestContext } from "../support/context.ts";
import { buildGoodLedger } from "../support/good-ledger.ts";
import { ALL_BEHIND, guardedRows, newTables, WRONG } from "../support/guard-cases.ts";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import { SCRIPTED } from "../support/stage.ts";
import { tableGuards } from "../support/table-guards.ts";
import { createConnections } from "./connections.ts";

const TEST_MS = 120_000;

/** CHECKs of SQLite that only say that a column holds whole numbers. Here its type does. */
const OF_TYPES: readonly string[] = ["accounts_integers", "payees_integers"];

const lite = newTables();

let postgres: Postgres;
let ledger: ReservedSQL;
const { connectTo, closeAll } = createConnections(() => postgres.port);

beforeAll(async () => {
  postgres = await startPostgres();
  const sql = connectTo(await postgres.createDatabase());
  await migratePostgres(sql, { version: "0.1.0", newInstance: () => ({ id: "ins_none", createdAt: 0 }) });
  ledger = await sql.reserve();
  await copyGoodLedger();
  await speakAsSqlite();
  for (const statement of guardedRows()) await run(statement);
}, TEST_MS);
afterAll(async () => {
  await closeAll();
  await postgres.close();
}, TEST_MS);

type Row = Readonly<Record<string, unknown>>;

/** Tables that others look into, before these. */
const FIRST = [
  ...["organisations", "scopes", "users", "agents", "spend_sessions", "accounts", "deposits", "warrants"],
  ...["purchases", "payees", "trace", "checks", "postings"],
];
/** Sums, which begin with nothing and are written once their parts are there. */
const SUMS: Readonly<Record<string, readonly string[]>> = {
  accounts: ["available", "held", "paid", "funding", "payable", "submitted", "posted"],
  payees: ["payable", "submitted", "paid_out"],
};

/**
 * The rows of a ledger that Holdfast wrote, as if all its commands had come in one batch: table by table, each row in its last state.
 * The guards take it.
 */
async function copyGoodLedger(): Promise<void> {
  const ctx = createTestContext(SCRIPTED);
  await buildGoodLedger(ctx);
  const { raw } = connect(ledgerFile(ctx.folder), { readonly: true });
  const tables = raw
    .query<{ name: string }, []>(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '\\_\\_%' ESCAPE '\\'",
    )
    .all()
    .map(({ name }) => name);
  const rowsOf = (table: string): readonly Row[] =>
    raw
      .query<Row, []>(`SELECT rowid AS rowid, * FROM ${table}`)
      .all()
      .map(({ rowid, ...row }) => ("position" in row ? row : { rowid, ...row }));
  await ledger`DELETE FROM instances`;
  for (const table of new Set([...FIRST, ...tables])) {
    const empty = Object.fromEntries((SUMS[table] ?? []).map((column) => [column, 0n]));
    // An organisation makes its scopes itself, with other numbers than these.
    await ledger`SELECT set_config('session_replication_role', ${table === "organisations" ? "replica" : "origin"}, false)`;
    await insert(
      table,
      rowsOf(table).map((row) => ({ ...row, ...empty })),
    );
  }
  for (const [table, columns] of Object.entries(SUMS))
    for (const row of rowsOf(table))
      await ledger.unsafe(
        `UPDATE ${table} SET ${columns.map((column, at) => `${column} = $${at + 2}`).join(", ")} WHERE position = $1`,
        [row.position, ...columns.map((column) => row[column])],
      );
  raw.close();
  await ctx.close();
}

/** Inserts rows by one statement. */
async function insert(table: string, rows: readonly Row[]): Promise<void> {
  const [first] = rows;
  if (first === undefined) return;
  const columns = Object.keys(first);
  const places = rows.map(
    (_, row) => `(${columns.map((__, column) => `$${row * columns.length + column + 1}`).join(", ")})`,
  );
  await ledger.unsafe(
    `INSERT INTO ${table} (${columns.map((column) => `"${column}"`).join(", ")}) VALUES ${places.join(", ")}`,
    rows.flatMap((row) => columns.map((column) => row[column])),
  );
}

/** Gives new rows their numbers, as SQLite does by itself, and has those of its functions that the statements use. */
async function speakAsSqlite(): Promise<void> {
  await ledger`CREATE FUNCTION zeroblob(bytes int) RETURNS bytea LANGUAGE sql AS 'SELECT decode(repeat(''00'', bytes), ''hex'')'`;
  await ledger`CREATE FUNCTION randomblob(bytes int) RETURNS bytea LANGUAGE sql AS 'SELECT decode(repeat(md5(random()::text), bytes / 16), ''hex'')'`;
  await ledger`CREATE FUNCTION hex(bytes bytea) RETURNS text LANGUAGE sql AS 'SELECT upper(encode(bytes, ''hex''))'`;
  for (const column of ["position", "rowid"]) {
    await ledger.unsafe(
      `CREATE FUNCTION new_${column}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.${column} := nextval(''positions''); RETURN NEW; END'`,
    );
    const tables: { name: string }[] = await ledger`SELECT table_name AS name FROM information_schema.columns
      WHERE table_schema = 'public' AND column_name = ${column}`;
    for (const { name } of tables)
      await ledger.unsafe(
        `CREATE TRIGGER a_new_${column} BEFORE INSERT ON ${name} FOR EACH ROW WHEN (NEW.${column} IS NULL) EXECUTE FUNCTION new_${column}()`,
      );
  }
}

const run = async (statement: string): Promise<void> => {
  await ledger.unsafe(statement.replace(/\bx'([0-9a-f]*)'/g, "'\\x$1'::bytea")).simple();
};

/** The message on statements after one another, in SQLite's words where the tables themselves refuse; empty where none is refused. Nothing stays. */
async function messageOn(...statements: readonly string[]): Promise<string> {
  await ledger`BEGIN`;
  try {
    for (const statement of statements) await run(statement);
    return "";
  } catch (error) {
    return messageOf(error as Refusal);
  } finally {
    await ledger`ROLLBACK`;
  }
}

type Refusal = Error & {
  readonly [Field in "errno" | "table" | "column" | "constraint" | "detail"]?: string;
};

function messageOf({ errno, table, column, constraint, detail, message }: Refusal): string {
  switch (errno) {
    case "23505": {
      const [, columns = ""] = /^Key \((.*?)\)=/.exec(detail ?? "") ?? [];
      return `UNIQUE constraint failed: ${columns.replace(/\w+/g, `${table}.$&`)}`;
    }
    case "23514":
      return `CHECK constraint failed: ${constraint}`;
    case "23503":
      return "FOREIGN KEY constraint failed";
    case "23502":
      return `NOT NULL constraint failed: ${table}.${column}`;
    default:
      return message;
  }
}

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
  const aWarrant = "FROM warrants WHERE id = 'wrt_bare'";
  const held =
    "SELECT nextval('positions'), account, 'hold', 'live_book', position, -amount, amount, 0, 0, 0, 0, 0";
  const refunded =
    "SELECT nextval('positions'), account, 'settlement', 'live_book', position, amount, -amount, 0, 0, 0, 0, 0";
  const POSTINGS =
    "INSERT INTO postings (position, account, kind, rail, cause, available, held, paid, funding, recorded_at, payable, submitted)";
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

  const ofPayout = (id: string, kind: string, payable: string, submitted: string) =>
    `SELECT nextval('positions'), account, '${kind}', rail, position, 0, 0, 0, 0, 0, ${payable}, ${submitted} FROM payouts WHERE id = 'pay_${id}'`;
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

  test("may give leaves in any order, without gaps, and a row of another table the next", async () => {
    const leaves = (pairs: string) =>
      `UPDATE trace SET leaf_index = given.leaf FROM (VALUES ${pairs}) AS given (at, leaf) WHERE position = given.at`;
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

  test("may hold in a session more than once, and not before", async () => {
    const hold = (...ats: readonly number[]) =>
      `INSERT INTO session_totals (session, held_at, total) SELECT session, latest + at, 1
       FROM (SELECT session, max(held_at) AS latest FROM session_totals GROUP BY session LIMIT 1) AS held, unnest('{${ats}}'::int8[]) AS at`;
    expect(await messageOn(hold(2, 1))).toBe("");
    expect(await messageOn(hold(-1))).toBe("what a session held is history");
    expect(await messageOn(hold(2), hold(-1))).toBe("what a session held is history");
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

/** The statement that takes a guard out of the tables. */
async function removalOf(name: string): Promise<string> {
  const [found] = await ledger`SELECT format('DROP TRIGGER %I ON %s', tgname, tgrelid::regclass) AS removal
    FROM pg_trigger WHERE tgname = ${name}
    UNION ALL SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname)
    FROM pg_constraint WHERE conname = ${name} AND contype = 'c'
    UNION ALL SELECT format('DROP INDEX %I CASCADE', relname) FROM pg_class WHERE relname = ${name} AND relkind = 'i'`;
  if (found === undefined) throw new Error(`there is no guard ${name}`);
  return found.removal;
}
