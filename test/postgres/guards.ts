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

/** The rows of a ledger that Holdfast wrote, past the guards, which were asked when it did. */
async function copyGoodLedger(): Promise<void> {
  const ctx = createTestContext(SCRIPTED);
  await buildGoodLedger(ctx);
  const { raw } = connect(ledgerFile(ctx.folder), { readonly: true });
  const tables = raw
    .query<{ name: string }, []>(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '\\_\\_%' ESCAPE '\\'",
    )
    .all();
  await ledger`SET session_replication_role = replica`;
  await ledger`DELETE FROM instances`;
  for (const { name } of tables)
    for (const row of raw.query<Record<string, unknown>, []>(`SELECT rowid AS rowid, * FROM ${name}`).all()) {
      const columns = Object.keys(row).filter((column) => column !== "rowid" || !("position" in row));
      await ledger.unsafe(
        `INSERT INTO ${name} (${columns.map((column) => `"${column}"`).join(", ")}) VALUES (${columns.map((_, at) => `$${at + 1}`).join(", ")})`,
        columns.map((column) => row[column]),
      );
    }
  await ledger`SET session_replication_role = origin`;
  raw.close();
  await ctx.close();
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

  for (const { name, refusedWith, remove } of tableGuards(newTables()))
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
