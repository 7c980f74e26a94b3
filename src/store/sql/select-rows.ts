import { type Column, type GetColumnData, getTableName } from "drizzle-orm";
import type { SqlDatabase, SqlValue } from "./database.ts";

type Row<Columns extends Readonly<Record<string, Column>>> = {
  [Name in keyof Columns]: GetColumnData<Columns[Name]>;
};

/**
 * Prepares a statement that reads these columns of a table, with values as drizzle gives them. To make its first own select
 * takes drizzle 4 ms, so what every start asks is asked in this way.
 *
 * @param rest what follows the table's name in the statement
 */
export function selectRows<Columns extends Readonly<Record<string, Column>>>(
  raw: SqlDatabase,
  columns: Columns,
  rest: string,
): (...bindings: SqlValue[]) => Row<Columns>[] {
  const selected = Object.entries(columns);
  const names = selected.map(([, column]) => `${getTableName(column.table)}.${column.name}`);
  const table = getTableName((selected[0] as [string, Column])[1].table);
  const statement = raw.prepare<unknown, SqlValue[]>(`SELECT ${names.join(", ")} FROM ${table} ${rest}`);
  const rowOf = (values: readonly unknown[]) =>
    Object.fromEntries(
      selected.map(([name, column], at) => [
        name,
        values[at] === null ? null : column.mapFromDriverValue(values[at]),
      ]),
    ) as Row<Columns>;
  return (...bindings) => statement.values(...bindings).map(rowOf);
}
