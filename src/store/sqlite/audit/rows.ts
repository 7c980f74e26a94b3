import type { Database, SQLQueryBindings } from "bun:sqlite";
import { getTableColumns, getTableName, type InferSelectModel } from "drizzle-orm";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import type { Warrant } from "../../../core/warrant.ts";
import type { Names } from "../../sql/names.ts";
import { type StoredWarrant, warrantOf } from "../../sql/warrant-rows.ts";

type Raw = Readonly<Record<string, unknown>>;

/** A row as the driver read it. `read` decodes it, and throws where that fails. */
export type AuditedRow<T extends SQLiteTable> = {
  readonly raw: Raw;
  readonly read: () => InferSelectModel<T>;
};

/** The rows of a table, one at a time. With this driver, drizzle itself can only read all rows at once. */
export function* rowsOf<T extends SQLiteTable>(
  database: Database,
  table: T,
  rest = "",
  ...bindings: SQLQueryBindings[]
): Generator<AuditedRow<T>> {
  const columns = columnsOf(table);
  const query = database.query<Raw, SQLQueryBindings[]>(`SELECT * FROM ${getTableName(table)} ${rest}`);
  for (const raw of query.iterate(...bindings)) {
    const read = () => {
      const row: Record<string, unknown> = {};
      for (const [key, column] of columns) {
        const value = raw[column.name];
        row[key] = value === null ? null : column.mapFromDriverValue(value);
      }
      return row as InferSelectModel<T>;
    };
    yield { raw, read };
  }
}

const columnsOf = memoised((table: SQLiteTable) => Object.entries(getTableColumns(table)));

/** How many results are remembered, so that the memory of an audit is bounded. */
const REMEMBERED_MAX = 2_000;

/** The same function, which remembers its recent results. */
export function memoised<Asked, Answer>(work: (asked: Asked) => Answer): (asked: Asked) => Answer {
  const known = new Map<Asked, Answer>();
  return (asked) => {
    const found = known.get(asked);
    if (found !== undefined) return found;
    const answer = work(asked);
    if (known.size >= REMEMBERED_MAX) known.clear();
    known.set(asked, answer);
    return answer;
  };
}

/** Groups rows by a key. */
export function grouped<Row>(rows: Iterable<Row>, keyOf: (row: Row) => unknown): Map<unknown, Row[]> {
  const groups = new Map<unknown, Row[]>();
  for (const row of rows) {
    const group = groups.get(keyOf(row));
    if (group) group.push(row);
    else groups.set(keyOf(row), [row]);
  }
  return groups;
}

/** Reads from one snapshot of the ledger. */
export function inSnapshot<T>(database: Database, read: () => T): T {
  database.run("BEGIN");
  try {
    return read();
  } finally {
    database.run("ROLLBACK");
  }
}

/** Reads all rows of a query at once. They must be few. */
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

/** A warrant by its id; null where it does not exist. */
export function readWarrant(database: Database, names: Names, id: string): Warrant | null {
  const row = database.query<StoredWarrant, [string]>("SELECT * FROM warrants WHERE id = ?").get(id);
  return row === null ? null : warrantOf(row, names);
}

/**
 * The messages of a part of the audit. An error in it becomes a message too, so that the other parts are
 * still audited.
 */
export function* guarded(what: string, part: () => Iterable<string>): Generator<string> {
  try {
    yield* part();
  } catch (error) {
    yield unreadable(what, error);
  }
}

const unreadable = (what: string, error: unknown): string =>
  `${what}: cannot be read: ${error instanceof Error ? error.message : String(error)}`;

/** Gives a message where a value differs from the expected one. */
export function* expectSame(what: string, actual: unknown, expected: unknown): Generator<string> {
  if (actual !== expected) yield differing(what, actual, expected);
}

const differing = (what: string, actual: unknown, expected: unknown): string =>
  `${what} is ${show(actual)}, not ${show(expected)}`;

/**
 * Takes a message. What is compared for every warrant and every entry of a trace says its messages so: a generator within a
 * generator would take longer than what it compares.
 */
export type Say = (message: string) => void;

/** As `guarded`, for what says its messages. */
export function guard(say: Say, what: string, part: () => void): void {
  try {
    part();
  } catch (error) {
    say(unreadable(what, error));
  }
}

/** As `expectSame`, for what says its messages. */
export function compare(say: Say, what: string, actual: unknown, expected: unknown): void {
  if (actual !== expected) say(differing(what, actual, expected));
}

const show = (value: unknown): string =>
  typeof value === "bigint" ? value.toString() : (JSON.stringify(value) ?? "missing");
