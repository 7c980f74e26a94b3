import type { ReservedSQL, SQL } from "bun";
import { migratePostgres } from "../../src/store/postgres/migrate.ts";
import { ledgerFile } from "../../src/store/sqlite/ledger-file.ts";
import { connect } from "../../src/store/sqlite/open.ts";
import { createTestContext } from "../support/context.ts";
import { buildGoodLedger } from "../support/good-ledger.ts";
import { guardedRows } from "../support/guard-cases.ts";
import { SCRIPTED } from "../support/stage.ts";

/** A ledger with the rows that the cases of guards need, on PostgreSQL. */
export type GuardedLedger = {
  /** The message on statements after one another, in SQLite's words where the tables themselves refuse; empty where none is refused. Nothing stays. */
  messageOn(...statements: readonly string[]): Promise<string>;
  /** The statement that takes a guard out of the tables. */
  removalOf(name: string): Promise<string>;
};

/** @param sql an empty database */
export async function createGuardedLedger(sql: SQL): Promise<GuardedLedger> {
  await migratePostgres(sql, { version: "0.1.0", newInstance: () => ({ id: "ins_none", createdAt: 0 }) });
  const ledger = await sql.reserve();
  await copyGoodLedger(ledger);
  await speakAsSqlite(ledger);
  for (const statement of guardedRows()) await run(ledger, statement);
  return {
    messageOn: (...statements) => messageOn(ledger, statements),
    removalOf: (name) => removalOf(ledger, name),
  };
}

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
async function copyGoodLedger(ledger: ReservedSQL): Promise<void> {
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
      ledger,
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
async function insert(ledger: ReservedSQL, table: string, rows: readonly Row[]): Promise<void> {
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
async function speakAsSqlite(ledger: ReservedSQL): Promise<void> {
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

const run = async (ledger: ReservedSQL, statement: string): Promise<void> => {
  await ledger.unsafe(statement.replace(/\bx'([0-9a-f]*)'/g, "'\\x$1'::bytea")).simple();
};

async function messageOn(ledger: ReservedSQL, statements: readonly string[]): Promise<string> {
  await ledger`BEGIN`;
  try {
    for (const statement of statements) await run(ledger, statement);
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

async function removalOf(ledger: ReservedSQL, name: string): Promise<string> {
  const [found] = await ledger`SELECT format('DROP TRIGGER %I ON %s', tgname, tgrelid::regclass) AS removal
    FROM pg_trigger WHERE tgname = ${name}
    UNION ALL SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname)
    FROM pg_constraint WHERE conname = ${name} AND contype = 'c'
    UNION ALL SELECT format('DROP INDEX %I CASCADE', relname) FROM pg_class WHERE relname = ${name} AND relkind = 'i'`;
  if (found === undefined) throw new Error(`there is no guard ${name}`);
  return found.removal;
}
