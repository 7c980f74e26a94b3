import { Database } from "bun:sqlite";
import { writeFileSync } from "node:fs";
import { digestOfValues } from "../sql/row-digest.ts";
import { importedTables } from "../sql/tables/ledger.ts";
import { NUMBERED } from "../sqlite/audit/kept.ts";
import { migrate } from "../sqlite/migrate.ts";
import { type CopiedRow, type RowSource, type RowTarget, rowsQuery, sizeQuery } from "./copy-rows.ts";
import type { LedgerTable } from "./ledger-tables.ts";

/** The rows of a ledger in a file of SQLite. What is read is of one moment where the connection is in a transaction. */
export function rowsOfFile(raw: Database): RowSource {
  return {
    async sizeOf(table) {
      const [[rows, longest] = []] = raw.query(sizeQuery(table)).values() as bigint[][];
      return { rows: Number(rows), longest: Number(longest) };
    },
    async rowsAfter(table, after, rowsMax) {
      const rows = raw.query(rowsQuery(table)).values(after, rowsMax) as CopiedRow[];
      for (const row of rows) refuseOtherTypes(table, row);
      return rows;
    },
  };
}

const TYPES = {
  int8: (value: unknown) => typeof value === "bigint",
  text: (value: unknown) => typeof value === "string",
  bytea: (value: unknown) => value instanceof Uint8Array,
} as const;

/** SQLite keeps any value in any column, where somebody wrote it by hand. */
function refuseOtherTypes({ name, columns, key }: LedgerTable, row: CopiedRow): void {
  for (const [at, { name: column, type }] of columns.entries()) {
    const value = row[at];
    if (value === null || TYPES[type](value)) continue;
    const number = row[columns.findIndex((each) => each.name === key)];
    throw new Error(`${name}.${column} of the row ${number} is not of the type ${type}`);
  }
}

/** A ledger in a new file, which gets its rows from elsewhere. */
export type NewLedgerFile = {
  readonly raw: Database;
  readonly target: RowTarget;
  /** Makes the indexes and guards, when all rows are there. The file can then be used as a ledger. */
  finish(): void;
  close(): void;
};

type SchemaObject = { readonly type: string; readonly name: string; readonly sql: string };

/**
 * Makes a ledger in a new file, mode 0600, that nobody else uses until it is finished: nothing is undone after a failure, and nothing
 * is on disk before it is synced. The guards would refuse rows that are not new, such as a warrant that has ended. So they are made
 * after the rows, and the audit says whether these are right. So are the indexes, which costs less then.
 */
export function createLedgerFile(file: string): NewLedgerFile {
  tablesAlone ??= makeTablesAlone();
  const { bytes, later } = tablesAlone;
  writeFileSync(file, bytes, { flag: "wx", mode: 0o600 });
  const raw = new Database(file, { readwrite: true, safeIntegers: true });
  for (const pragma of [
    "journal_mode = OFF",
    "synchronous = OFF",
    "cache_size = -65536",
    "temp_store = FILE",
  ])
    raw.run(`PRAGMA ${pragma}`);
  for (const pragma of ["foreign_keys = OFF", "ignore_check_constraints = ON"]) raw.run(`PRAGMA ${pragma}`);
  return {
    raw,
    target: {
      async write(table, rows) {
        const insert = raw.query(insertInto(table));
        raw.run("BEGIN");
        for (const row of rows) insert.run(...(row as (bigint | string | Uint8Array | null)[]));
        raw.run("COMMIT");
      },
    },
    finish() {
      raw.run("BEGIN");
      for (const table of NUMBERED) noteImported(raw, table);
      for (const { sql } of later) raw.run(sql);
      raw.run("COMMIT");
    },
    close: () => raw.close(),
  };
}

type TablesAlone = { readonly bytes: Uint8Array; readonly later: readonly SchemaObject[] };

/** What was made before: to make it takes tens of milliseconds. */
let tablesAlone: TablesAlone | null = null;

/** The file of a ledger that has its tables, and no row, and the indexes and guards that it lacks. */
function makeTablesAlone(): TablesAlone {
  const raw = new Database(":memory:", { safeIntegers: true });
  try {
    migrate(raw);
    const later = raw
      .query<SchemaObject, []>(
        "SELECT type, name, sql FROM sqlite_schema WHERE type IN ('index', 'trigger') AND sql IS NOT NULL",
      )
      .all();
    for (const { type, name } of later) raw.run(`DROP ${type} "${name}"`);
    raw.run("VACUUM");
    return { bytes: raw.serialize(), later };
  } finally {
    raw.close();
  }
}

const digestOfImported = digestOfValues(importedTables);

/** Notes how far a table came from PostgreSQL, whose positions have gaps. */
function noteImported(raw: Database, name: string): void {
  const { last } =
    raw.query<{ last: bigint | null }, []>(`SELECT max(position) AS last FROM ${name}`).get() ?? {};
  if (last == null) return;
  raw
    .query("INSERT OR REPLACE INTO imported_tables (name, last, digest) VALUES (?, ?, ?)")
    .run(name, last, digestOfImported({ name, last: Number(last) }));
}

const insertInto = ({ name, columns }: LedgerTable): string =>
  `INSERT INTO "${name}" (${columns.map((column) => `"${column.name}"`).join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`;
