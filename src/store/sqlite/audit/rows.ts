import type { Database, SQLQueryBindings } from "bun:sqlite";
import { getTableColumns, getTableName, type InferSelectModel } from "drizzle-orm";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import type { Warrant } from "../../../core/warrant.ts";
import { SELECT_WARRANTS, type StoredWarrant, warrantOf } from "../warrant-rows.ts";

type Raw = Readonly<Record<string, unknown>>;

/** A row as the driver read it, and what it says, which may not be readable. */
export type AuditedRow<T extends SQLiteTable> = {
  readonly raw: Raw;
  readonly read: () => InferSelectModel<T>;
};

/** What is in a table, one row at a time. drizzle itself only reads whole tables for this driver. */
export function* rowsOf<T extends SQLiteTable>(
  database: Database,
  table: T,
  rest = "",
  ...bindings: SQLQueryBindings[]
): Generator<AuditedRow<T>> {
  const columns = Object.entries(getTableColumns(table));
  const query = database.query<Raw, SQLQueryBindings[]>(`SELECT * FROM ${getTableName(table)} ${rest}`);
  for (const raw of query.iterate(...bindings)) {
    const read = () =>
      Object.fromEntries(
        columns.map(([key, column]) => {
          const value = raw[column.name];
          return [key, value === null ? null : column.mapFromDriverValue(value)];
        }),
      ) as InferSelectModel<T>;
    yield { raw, read };
  }
}

/** The few rows that belong to one thing. */
export const readRows = <T extends SQLiteTable>(
  database: Database,
  table: T,
  rest: string,
  ...bindings: SQLQueryBindings[]
): readonly InferSelectModel<T>[] => [
  ...rowsOf(database, table, rest, ...bindings).map(({ read }) => read()),
];

export const readRow = <T extends SQLiteTable>(
  database: Database,
  table: T,
  id: string,
): InferSelectModel<T> | null => readRows(database, table, "WHERE id = ?", id)[0] ?? null;

/** A warrant by its id; null where it is not there. */
export function readWarrant(database: Database, id: string): Warrant | null {
  const row = database.query<StoredWarrant, [string]>(`${SELECT_WARRANTS} WHERE w.id = ?`).get(id);
  return row === null ? null : warrantOf(row);
}

/** The messages of a part of the audit. What makes it stumble is a message too, and hides nothing of the other parts. */
export function* guarded(what: string, part: () => Iterable<string>): Generator<string> {
  try {
    yield* part();
  } catch (error) {
    yield `${what}: cannot be read: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Consecutive rows of one key, folded into a sum; `compare` says what is wrong with it. The rows are sorted by the key. */
export function* foldGroups<Row, Sum>(
  rows: Iterable<Row>,
  keyOf: (row: Row) => string,
  start: (row: Row) => Sum,
  add: (sum: Sum, row: Row) => void,
  compare: (sum: Sum) => Iterable<string>,
): Generator<string> {
  let key: string | null = null;
  let sum: Sum | null = null;
  for (const row of rows) {
    if (keyOf(row) !== key) {
      if (sum !== null) yield* compare(sum);
      key = keyOf(row);
      sum = start(row);
    }
    if (sum !== null) add(sum, row);
  }
  if (sum !== null) yield* compare(sum);
}

/** A message where a value is not what it must be. */
export function* expectSame(what: string, actual: unknown, expected: unknown): Generator<string> {
  if (actual !== expected) yield `${what} is ${show(actual)}, not ${show(expected)}`;
}

const show = (value: unknown): string =>
  typeof value === "bigint" ? value.toString() : (JSON.stringify(value) ?? "missing");
