import { type SQL, sql } from "drizzle-orm";
import { customType, text } from "drizzle-orm/sqlite-core";
import { MODES } from "../../core/roles.ts";

/** Whole numbers that a double holds: counts, versions, epoch milliseconds. The connection reads every integer as bigint. */
export const int = customType<{ data: number; driverData: bigint | number }>({
  dataType: () => "integer",
  fromDriver: Number,
});

/** Amounts: 64-bit integers, bigint on both sides. */
export const amount = customType<{ data: bigint; driverData: bigint }>({ dataType: () => "integer" });

export const bool = customType<{ data: boolean; driverData: bigint | number }>({
  dataType: () => "integer",
  fromDriver: (value) => Number(value) === 1,
  toDriver: (value) => (value ? 1 : 0),
});

/** A JSON document as text; null where there is none. */
export const json = <Data>(name: string) =>
  customType<{ data: Data; driverData: string | null }>({
    dataType: () => "text",
    fromDriver: (text) => JSON.parse(text ?? "null") as Data,
    toDriver: (value) => (value === null ? null : JSON.stringify(value)),
  })(name);

/** `column IN ('a', 'b')` for a CHECK. The values are the code's own. */
export const oneOf = (column: { getSQL(): SQL } | SQL, values: readonly string[]): SQL =>
  sql`${column} IN (${sql.raw(values.map((value) => `'${value}'`).join(", "))})`;

export const modeColumn = () => text("mode", { enum: MODES }).notNull();
