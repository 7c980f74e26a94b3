import type { LedgerTable } from "./ledger-tables.ts";

/** A row, with a value for each column of its table: a bigint, a text, bytes, or null. */
export type CopiedRow = readonly (bigint | string | Uint8Array | null)[];

/** A ledger that rows are read from: a file, or a database of PostgreSQL. All that is read of it is of one moment. */
export type RowSource = {
  /** How many rows a table has, and how many bytes the texts and blobs of its longest row are. */
  sizeOf(table: LedgerTable): Promise<{ readonly rows: number; readonly longest: number }>;
  /** The next rows in the order of their numbers: those after `after`. */
  rowsAfter(table: LedgerTable, after: bigint, rowsMax: number): Promise<readonly CopiedRow[]>;
};

/** A ledger that rows are written to. */
export type RowTarget = { write(table: LedgerTable, rows: readonly CopiedRow[]): Promise<void> };

/** How many rows are in memory at once, and how many bytes their texts and blobs may be together. One row may be longer. */
const ROWS_AT_ONCE = 5_000;
const BYTES_AT_ONCE = 32 * 1_024 * 1_024;

const BEFORE_ALL = -(2n ** 63n);

/** What was copied: how many rows, and for each table the SHA-256 of all its rows in their order. */
export type CopiedRows = { readonly rows: number; readonly hashes: ReadonlyMap<string, string> };

/**
 * Copies every row of a ledger, with its number.
 *
 * @param onProgress is called with how many rows are copied, and how many there are
 * @throws where a table has more rows, or fewer, than could be read of it
 */
export async function copyRows(
  tables: readonly LedgerTable[],
  source: RowSource,
  target: RowTarget,
  onProgress: (done: number, total: number) => void = () => {},
): Promise<CopiedRows> {
  const sizes = new Map<LedgerTable, Awaited<ReturnType<RowSource["sizeOf"]>>>();
  for (const table of tables) sizes.set(table, await source.sizeOf(table));
  const total = sizes.values().reduce((sum, { rows }) => sum + rows, 0);
  const hashes = new Map<string, string>();
  let done = 0;
  for (const [table, { rows: expected, longest }] of sizes) {
    const rowsAtOnce = Math.max(1, Math.min(ROWS_AT_ONCE, Math.floor(BYTES_AT_ONCE / Math.max(1, longest))));
    const key = table.columns.findIndex(({ name }) => name === table.key);
    const hasher = new Bun.CryptoHasher("sha256");
    const before = done;
    for (let after = BEFORE_ALL; ; ) {
      const rows = await source.rowsAfter(table, after, rowsAtOnce);
      const last = rows.at(-1);
      if (!last) break;
      hashRows(hasher, rows);
      await target.write(table, rows);
      after = last[key] as bigint;
      done += rows.length;
      onProgress(done, total);
    }
    if (done - before !== expected)
      throw new Error(`${table.name} has ${expected} rows, and ${done - before} of them could be read`);
    hashes.set(table.name, hasher.digest("hex"));
  }
  return { rows: done, hashes };
}

/** Every value says its type and its length, so that no two lists of rows are the same text. */
function hashRows(hasher: Bun.CryptoHasher, rows: readonly CopiedRow[]): void {
  let text = "";
  for (const row of rows) {
    for (const value of row) {
      if (value === null) text += "n";
      else if (typeof value === "bigint") text += `i${value},`;
      else if (typeof value === "string") text += `t${value.length}:${value}`;
      else text += `b${value.length}:${value.toHex()}`;
    }
  }
  hasher.update(text);
}

/** What is selected to answer `sizeOf`, and `rowsAfter` with `$1` and `$2`: both engines read it. */
export const sizeQuery = ({ name, columns }: LedgerTable): string => {
  const lengths = columns
    .filter(({ type }) => type !== "int8")
    .map((column) => `coalesce(octet_length("${column.name}"), 0)`);
  return `SELECT count(*), coalesce(max(${lengths.join(" + ") || "0"}), 0) FROM "${name}"`;
};
export const rowsQuery = ({ name, columns, key }: LedgerTable): string =>
  `SELECT ${columns.map((column) => `"${column.name}"`).join(", ")} FROM "${name}" WHERE "${key}" > $1 ORDER BY "${key}" LIMIT $2`;

/** For rows that are read for their hashes alone. */
export const NOWHERE: RowTarget = { write: async () => {} };

/** A copy in a file says in it how far its tables came from PostgreSQL. */
const OF_THE_COPY = "imported_tables";

/** The tables whose rows are not the same in two copies, one message each. */
export const differencesOf = (one: CopiedRows, other: CopiedRows): readonly string[] =>
  [...one.hashes]
    .filter(([table, hash]) => table !== OF_THE_COPY && other.hashes.get(table) !== hash)
    .map(([table]) => `the rows of ${table} are not those that were copied`);
