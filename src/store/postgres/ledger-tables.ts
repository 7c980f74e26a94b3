import { Database } from "bun:sqlite";
import { APPLIED, migrate } from "../sqlite/migrate.ts";
import type { ColumnType } from "./values.ts";

/** A table of the ledger, as both engines have it. */
export type LedgerTable = {
  readonly name: string;
  /** Its columns, and the number of the row where no column has it. */
  readonly columns: readonly { readonly name: string; readonly type: ColumnType }[];
  /** The column with the number of a row, unique and not null in both engines. */
  readonly key: string;
  /** Whether PostgreSQL numbers its rows in a column of their own, where in SQLite the primary key is that number. */
  readonly numbersApart: boolean;
};

const TYPE_OF: Readonly<Record<string, ColumnType>> = { INTEGER: "int8", TEXT: "text", BLOB: "bytea" };

type TableInfo = { readonly name: string; readonly type: string; readonly pk: bigint };

/**
 * Every table of the ledger, those that others refer to first. They are read from an empty ledger that is made in memory, so that no
 * list of them has to be kept.
 */
export function ledgerTables(): readonly LedgerTable[] {
  tables ??= readTables();
  return tables;
}

/** What was read before: to make an empty ledger takes tens of milliseconds. */
let tables: readonly LedgerTable[] | null = null;

function readTables(): readonly LedgerTable[] {
  const raw = new Database(":memory:", { safeIntegers: true });
  try {
    migrate(raw);
    const names = raw
      .query<{ name: string }, [string]>(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> ? ORDER BY name",
      )
      .all(APPLIED)
      .map(({ name }) => name);
    return parentsFirst(raw, names).map((name) => tableOf(raw, name));
  } finally {
    raw.close();
  }
}

function tableOf(raw: Database, name: string): LedgerTable {
  const found = raw.query<TableInfo, [string]>("SELECT name, type, pk FROM pragma_table_info(?)").all(name);
  const columns = found.map((column) => ({ name: column.name, type: typeOf(name, column) }));
  const [primary, another] = found.filter(({ pk }) => pk > 0n);
  // SQLite takes such a primary key for the number of the row.
  const own = primary && !another && TYPE_OF[primary.type.toUpperCase()] === "int8" ? primary.name : null;
  return own === null
    ? { name, columns: [{ name: "rowid", type: "int8" }, ...columns], key: "rowid", numbersApart: false }
    : { name, columns, key: own, numbersApart: own !== "position" };
}

function typeOf(table: string, { name, type }: TableInfo): ColumnType {
  const found = TYPE_OF[type.toUpperCase()];
  if (!found) throw new Error(`${table}.${name} has no type that both engines have`);
  return found;
}

function parentsFirst(raw: Database, names: readonly string[]): readonly string[] {
  const parents = raw.query<{ parent: string }, [string]>(
    `SELECT DISTINCT "table" AS parent FROM pragma_foreign_key_list(?)`,
  );
  const ordered = new Set<string>();
  const add = (name: string): void => {
    if (ordered.has(name)) return;
    for (const { parent } of parents.all(name)) if (parent !== name) add(parent);
    ordered.add(name);
  };
  for (const name of names) add(name);
  return [...ordered];
}
