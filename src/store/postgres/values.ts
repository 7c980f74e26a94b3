import { sql } from "bun";

/** The types of columns (`src/store/sql/columns.ts`), by their names in PostgreSQL. */
export type ColumnType = "int8" | "text" | "bytea";

const ARRAY_OF = { int8: "BIGINT", text: "TEXT", bytea: "BYTEA" } as const;

/** A list of values as a parameter. */
export const arrayOf = (type: ColumnType, values: readonly unknown[]): unknown =>
  sql.array(values as never, ARRAY_OF[type]);

/** A row as Bun's client gives it. */
export type ObjectRow = Record<string, unknown>;

/** Bytes come as a `Buffer`, and are taken for what they are: a `Uint8Array`. */
const plain = (value: unknown): unknown =>
  Buffer.isBuffer(value) ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength) : value;

export const listOf = (row: readonly unknown[]): unknown[] => row.map(plain);

export function objectOf(row: ObjectRow): ObjectRow {
  for (const name in row) {
    if (Buffer.isBuffer(row[name])) row[name] = plain(row[name]);
  }
  return row;
}
