import { type SQL, sql } from "drizzle-orm";
import { customType, text } from "drizzle-orm/sqlite-core";
import { MODES } from "../../core/roles.ts";

/** Anything but 64 hexadecimal digits is refused. */
function bytesOf(hex: string): Uint8Array {
  if (hex.length !== 64) throw new Error(`${JSON.stringify(hex)} is not a SHA-256`);
  return Uint8Array.fromHex(hex);
}

export const hexOf = (bytes: Uint8Array): string => bytes.toHex();

/**
 * Whole numbers that fit a double: counts, versions, epoch milliseconds. The connection reads every integer
 * as a bigint.
 */
export const int = customType<{ data: number; driverData: bigint | number }>({
  dataType: () => "integer",
  fromDriver: Number,
});

/** Amounts: 64-bit integers, as bigint in code and in the driver. */
export const amount = customType<{ data: bigint; driverData: bigint }>({ dataType: () => "integer" });

export const bool = customType<{ data: boolean; driverData: bigint | number }>({
  dataType: () => "integer",
  fromDriver: (value) => Number(value) === 1,
  toDriver: (value) => (value ? 1 : 0),
});

/** A SHA-256: lower-case hex in code, its 32 bytes in the file. */
export const hash = customType<{ data: string; driverData: Uint8Array }>({
  dataType: () => "blob",
  fromDriver: hexOf,
  toDriver: bytesOf,
});

/** The digest of a row (`row-digest.ts`). A row in which it is null was not written by Holdfast. */
export const digest = customType<{ data: bigint; driverData: bigint }>({ dataType: () => "integer" });

/** A JSON document as text; null where there is none. */
export const json = <Data>(name: string) =>
  customType<{ data: Data; driverData: string | null }>({
    dataType: () => "text",
    fromDriver: (text) => JSON.parse(text ?? "null") as Data,
    toDriver: (value) => (value === null ? null : JSON.stringify(value)),
  })(name);

/** Texts for an IN list of SQL. They are the code's own. */
export const literals = (values: readonly string[]): string => values.map((value) => `'${value}'`).join(", ");

/**
 * The condition of a CHECK that a column has one of these values, which come from the code. For an IN list
 * SQLite would build a table at every insert; for the nine states that took a fifth of the insert.
 */
export const oneOf = (column: { getSQL(): SQL } | SQL, values: readonly string[]): SQL =>
  sql`(${sql.join(
    values.map((value) => sql`${column} = ${sql.raw(`'${value}'`)}`),
    sql` OR `,
  )})`;

/**
 * Whether a column holds an integer, for a CHECK. It is not typeof(): with a function in a CHECK, SQLite keeps a journal for every
 * insert, to undo it by itself. What no integer equals is a fraction, a text or a blob; the least integer has a double that equals it.
 */
export const isInteger = (column: { getSQL(): SQL }): SQL =>
  sql`${column} | 0 = ${column} AND ${column} > -9223372036854775808`;

export const modeColumn = () => text("mode", { enum: MODES }).notNull();
