import type { Database } from "bun:sqlite";

/** Rows whose key is above `after`, up to `last` itself. */
export type Slice<Key> = { readonly after: Key; readonly last: Key };

/** By what a table is divided, and what is below and above all of it: so rows that were planted at either end are read too. */
export type SlicedBy<Key> = { readonly column: string; readonly below: Key; readonly above: Key };

export const BY_POSITION: SlicedBy<bigint> = {
  column: "position",
  below: -(2n ** 63n),
  above: 2n ** 63n - 1n,
};
export const BY_ID: SlicedBy<string> = { column: "id", below: "", above: "\u{10ffff}" };
export const BY_HASH: SlicedBy<string> = { ...BY_ID, column: "hash" };

/**
 * Slices that cover a table, each of so many rows. Each is to be read by itself: while a snapshot is held, the write-ahead log
 * cannot be cut.
 */
export function* slicesOf<Key extends bigint | string>(
  database: Database,
  table: string,
  { column, below, above }: SlicedBy<Key>,
  rows: number,
): Generator<Slice<Key>> {
  const find = database.query<{ key: Key }, [Key, number]>(
    `SELECT ${column} AS key FROM ${table} WHERE ${column} > ? ORDER BY ${column} LIMIT 1 OFFSET ?`,
  );
  for (let after = below; ; ) {
    const last = find.get(after, rows - 1)?.key ?? above;
    yield { after, last };
    if (last === above) return;
    after = last;
  }
}

/** The part of a query for the rows of a slice. */
export const inSlice = (column: string): string => `${column} > ? AND ${column} <= ?`;
