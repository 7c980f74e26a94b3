import type { Database } from "bun:sqlite";

/** Called with how many more rows were read. */
export type Did = (rows: number) => void;

/** The rows with a key above `after` and up to `last`, which is included. */
export type Slice<Key> = { readonly after: Key; readonly last: Key };

/**
 * The column that a table is divided by, and values below and above all of its keys. With these, rows that
 * somebody inserted at either end are read too.
 */
export type SlicedBy<Key> = { readonly column: string; readonly below: Key; readonly above: Key };

export const BY_POSITION: SlicedBy<bigint> = {
  column: "position",
  below: -(2n ** 63n),
  above: 2n ** 63n - 1n,
};
/** For a table with any key: every row has a number besides. */
export const BY_ROW: SlicedBy<bigint> = { ...BY_POSITION, column: "rowid" };
export const BY_ID: SlicedBy<string> = { column: "id", below: "", above: "\u{10ffff}" };
export const BY_HASH: SlicedBy<string> = { ...BY_ID, column: "hash" };

/**
 * Slices that cover a whole table, each of `rows` rows. Each should be read in a snapshot of its own, since
 * SQLite cannot shorten the write-ahead log during a snapshot.
 *
 * @param did is called with the rows of each slice when the next one is asked for
 */
export function* slicesOf<Key extends bigint | string>(
  database: Database,
  table: string,
  { column, below, above }: SlicedBy<Key>,
  rows: number,
  did: Did,
): Generator<Slice<Key>> {
  const find = database.query<{ key: Key }, [Key, number]>(
    `SELECT ${column} AS key FROM ${table} WHERE ${column} > ? ORDER BY ${column} LIMIT 1 OFFSET ?`,
  );
  for (let after = below; ; ) {
    const last = find.get(after, rows - 1)?.key ?? above;
    yield { after, last };
    if (last === above) return;
    did(rows);
    after = last;
  }
}

/** The SQL condition for the rows of a slice. */
export const inSlice = (column: string): string => `${column} > ? AND ${column} <= ?`;
