import type { Database } from "bun:sqlite";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { drizzle } from "drizzle-orm/bun-sqlite";
import { COLUMNS, placeOf } from "../../src/store/postgres/columns.ts";
import type { SqlDatabase, SqlValue } from "../../src/store/sql/database.ts";
import { createSqlReader } from "../../src/store/sql/readers/reader.ts";
import type { SqlReader } from "../../src/store/sql/readers/sql-reader.ts";
import { ledgerFile } from "../../src/store/sqlite/ledger-file.ts";
import { connect } from "../../src/store/sqlite/open.ts";
import { ENGINE } from "./engine.ts";
import { databaseOf } from "./new-ledger.ts";
import { openSyncSql } from "./sync-sql.ts";

/** A row as it is stored: whole numbers are bigints. */
export type Row = Readonly<Record<string, bigint | string | Uint8Array | null>>;

/**
 * A ledger as a test looks into it, at once and on either engine: what is committed, and nothing else. The statements are such as
 * both engines take.
 */
export type TestLedger = {
  readonly reader: SqlReader;
  rows(sql: string, ...values: SqlValue[]): readonly Row[];
  /** Every row of a table, in the order of commits. */
  allRows(table: string, where?: string, ...values: SqlValue[]): readonly Row[];
  /** Writes into it beside the service, and answers how many rows that changed. */
  change(sql: string, ...values: SqlValue[]): number;
  /** Does work without the guards of the tables, as somebody could who has the ledger in their hands. */
  unguarded(work: () => void): void;
  /** Everything that is stored, as it is stored: every value of every row, and the embedded engine's files. */
  bytes(): Buffer;
  close(): void;
};

/** The tables of a ledger, with their columns. */
export const TABLES: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  [...COLUMNS]
    .map(([table, columns]) => [table, new Set(columns.keys())] as const)
    .toSorted(([one], [other]) => (one < other ? -1 : 1)),
);

/** What differs between the engines. */
type Opened = {
  readonly readable: SqlDatabase;
  writable(): SqlDatabase;
  setGuards(on: boolean): void;
  /** What is stored besides the values of rows. */
  files(): readonly Uint8Array[];
  close(): void;
};

/** Opens the ledger of a data folder, on connections of its own. */
export function openTestLedger(folder: string): TestLedger {
  const { readable, writable, setGuards, files, close } =
    ENGINE === "postgres" ? onPostgres(folder) : embedded(folder);
  const rows: TestLedger["rows"] = (sql, ...values) => readable.prepare<Row, SqlValue[]>(sql).all(...values);
  const allRows: TestLedger["allRows"] = (table, where = "true", ...values) =>
    rows(`SELECT ${columnsOf(table)} FROM ${table} WHERE ${where} ORDER BY ${placeOf(table)}`, ...values);
  return {
    reader: createSqlReader({ raw: readable, tables: drizzle(readable as never) }),
    rows,
    allRows,
    change: (sql, ...values) =>
      writable()
        .prepare(sql)
        .run(...values).changes,
    unguarded(work) {
      setGuards(false);
      try {
        work();
      } finally {
        setGuards(true);
      }
    },
    bytes() {
      const values = [...TABLES.keys()].flatMap((table) => allRows(table).flatMap(Object.values));
      return Buffer.concat([...values.map(bytesOf), ...files()]);
    },
    close,
  };
}

const columnsOf = (table: string): string =>
  [...(TABLES.get(table) ?? [])].map((name) => `"${name}"`).join(", ");

const bytesOf = (value: Row[string]): Uint8Array =>
  value instanceof Uint8Array ? value : Buffer.from(`${value}`);

function embedded(folder: string): Opened {
  const file = ledgerFile(folder);
  const { raw: readable } = connect(file, { readonly: true });
  let writing: Database | null = null;
  let guards: readonly { readonly name: string; readonly sql: string }[] = [];
  const writable = () => {
    writing ??= connect(file, { readonly: false }).raw;
    return writing;
  };
  return {
    readable,
    writable,
    setGuards(on) {
      const raw = writable();
      if (on) {
        for (const { sql } of guards) raw.run(sql);
        return;
      }
      guards = raw
        .query<{ name: string; sql: string }, []>(
          "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'",
        )
        .all();
      for (const { name } of guards) raw.run(`DROP TRIGGER ${name}`);
    },
    files: () => readdirSync(folder).map((name) => readFileSync(join(folder, name))),
    close() {
      readable.close();
      writing?.close();
    },
  };
}

function onPostgres(folder: string): Opened {
  const { raw, close } = openSyncSql(databaseOf(folder));
  return {
    readable: raw,
    writable: () => raw,
    files: () => [],
    setGuards: (on) => void raw.prepare(`SET session_replication_role = ${on ? "origin" : "replica"}`).run(),
    close,
  };
}
