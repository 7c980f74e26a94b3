import { Column, is, Param, Placeholder, type Query } from "drizzle-orm";
import type { SqlDatabase, SqlValue } from "./database.ts";
import { DIGEST, digestOfValues } from "./row-digest.ts";

/**
 * A statement that writes. It takes values by the names of its placeholders, and gives the position of an
 * inserted row.
 */
export type PreparedWrite = (values: Readonly<Record<string, unknown>>) => number;

/** A drizzle statement that is not prepared yet. */
type Statement = { toSQL(): Query };

/**
 * Prepares drizzle statements on the connection itself, at their first use. The binding of each parameter is
 * worked out once. Drizzle's own prepared statements work it out at every call, and a command makes half a
 * dozen calls.
 */
export const prepareWrites = <Name extends string>(
  database: SqlDatabase,
  statements: Readonly<Record<Name, () => Statement>>,
): Readonly<Record<Name, PreparedWrite>> =>
  Object.fromEntries(
    Object.entries<() => Statement>(statements).map(([name, make]) => {
      let prepared: PreparedWrite | null = null;
      const write: PreparedWrite = (values) => {
        prepared ??= prepareWrite(database, make());
        return prepared(values);
      };
      return [name, write];
    }),
  ) as Record<Name, PreparedWrite>;

function prepareWrite(database: SqlDatabase, write: Statement): PreparedWrite {
  const { sql: text, params } = write.toSQL();
  // A fault undoes the whole batch anyway. To undo a statement by itself, SQLite would copy every page that it touches. So a
  // refused insert ends the transaction, and so do the triggers after it: the caller must then expect no open transaction.
  const sql = text.replace(/^insert into/, "insert or rollback into");
  const statement = database.prepare<unknown, SqlValue[]>(sql);
  const fill = params.map(bindingOf);
  // An update that finds no row must not pass unnoticed.
  const isUpdate = sql.startsWith("update ");
  return (values) => {
    const { changes, lastInsertRowid } = statement.run(...fill.map((binding) => binding(values)));
    if (isUpdate && changes !== 1) throw new Error(`${changes} rows were changed, not one: ${sql}`);
    return Number(lastInsertRowid);
  };
}

type Binding = (values: Readonly<Record<string, unknown>>) => SqlValue;

function bindingOf(param: unknown): Binding {
  const placeholder = is(param, Param) ? param.value : param;
  // Nobody gives a row its digest: it follows from all other values.
  if (is(param, Param) && is(param.encoder, Column) && param.encoder.name === DIGEST)
    return digestOfValues(param.encoder.table);
  const encode = (value: unknown) =>
    (is(param, Param) && value !== null ? param.encoder.mapToDriverValue(value) : value) as SqlValue;
  if (!is(placeholder, Placeholder)) {
    const constant = encode(placeholder);
    return () => constant;
  }
  const { name } = placeholder;
  return (values) => {
    const value = values[name];
    if (value === undefined) throw new Error(`no value for ${name}`);
    return encode(value);
  };
}
