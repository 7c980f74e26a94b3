import { type Column, eq, type SQL, sql } from "drizzle-orm";
import type { Mode } from "../../core/roles.ts";
import { lazily } from "./lazily.ts";

/** The condition of a look-up by key. */
export const keyed = (column: Column): SQL => eq(column, sql.placeholder("key"));

/** A prepared statement that finds a row by its key. */
type Finder<Row> = { get(values: { key: string }): Row | undefined };

/** A look-up of one row by its key, prepared at its first use; null where there is no such row. */
export const finding = <Row>(prepare: () => Finder<Row>): ((key: string) => Row | null) =>
  lazily(() => {
    const statement = prepare();
    return (key) => statement.get({ key }) ?? null;
  });

/** Looks up one row by its key; null where it does not exist. */
export type LookUpRow<Row> = (key: string) => Row | null;

/** A look-up whose row becomes another. */
export function mapped<Stored, Row>(find: LookUpRow<Stored>, rowOf: (stored: Stored) => Row): LookUpRow<Row> {
  return (key) => {
    const stored = find(key);
    return stored === null ? null : rowOf(stored);
  };
}

/** Splits a key that begins with a scope. Only its last part may contain spaces. */
export function scopedKey(rowKey: string): { organisationId: string; mode: Mode; rest: string } {
  const [organisationId = "", mode, ...rest] = rowKey.split(" ");
  return { organisationId, mode: mode as Mode, rest: rest.join(" ") };
}
