import { type Column, getTableColumns, getTableName, type Table } from "drizzle-orm";

/**
 * The digest of a row: by it the audit finds a value that was changed by hand. It is the XXH64 (seed 0), as a signed number, of a
 * text in UTF-8: the table's name, and then a line for each column that is not null, in the order of the columns' names: `name=i`
 * and a whole number, `name=b` and bytes in lower-case hex, or `name=t`, the length of a text in UTF-16 units, `:` and the text. A column that
 * comes later is null in the rows before it, so their digests stay.
 *
 * It is no cryptographic hash, since it would not be any safer: whoever writes a value into the file can write its digest beside it.
 */

/** The name of the column with the digest. */
export const DIGEST = "digest";

/** Where a row stands. SQLite chooses it with the insert; what it stands for is checked by those who refer to it. */
const PLACE = "position";

/**
 * What the digests leave out besides, since it is covered elsewhere. That matters for the rows that every open writes: a digest of
 * all their columns took a sixth of its time in the tables.
 */
const LEFT_OUT: Readonly<Record<string, readonly string[]>> = {
  // The sums of the postings.
  accounts: ["available", "held", "paid", "funding", "payable", "submitted", "posted"],
  // The sums of what purchases count, and the numbers of warrants.
  content_sums: ["bytes"],
  warrant_counts: ["count"],
  // It gets its leaf later, and the log is computed anew.
  solvency_statements: ["leaf_index"],
  // The entry's hash is of these. An entry gets its leaf later, and the log is computed anew.
  trace: [
    ...["warrant", "sequence", "from_state", "to_state", "recorded_at", "encoding", "check_id"],
    "leaf_index",
  ],
  // `trace_head` is a hash of these, or of entries that contain them.
  warrants: [
    ...["id", "account", "state", "version", "amount", "payee", "spec", "spec_hash", "agent", "policy"],
    ...["opened_at", "settled_at"],
  ],
};

const isDigested = (table: string, column: string): boolean =>
  column !== DIGEST && column !== PLACE && !LEFT_OUT[table]?.includes(column);

/** The columns of a table that its digests are of, in their order. */
export const digestedColumns = (table: string, columns: readonly string[]): readonly string[] =>
  columns.filter((column) => isDigested(table, column)).sort();

/** The digest of a row that is to be written, from its values as the code has them. */
export function digestOfValues(table: Table): (values: Readonly<Record<string, unknown>>) => bigint {
  const name = getTableName(table);
  const columns = Object.entries<Column>(getTableColumns(table))
    .filter(([, column]) => isDigested(name, column.name))
    .sort(([, one], [, other]) => (one.name < other.name ? -1 : 1))
    .map(([key, column]) => ({
      key,
      start: `\n${column.name}=`,
      column,
      isBlob: column.getSQLType() === "blob",
    }));
  return (values) => {
    let text = name;
    for (const { key, start, column, isBlob } of columns) {
      const value = values[key];
      if (value === undefined) throw new Error(`no value for ${key}`);
      if (value === null) continue;
      // A hash is hex in code. Its bytes would only become hex again.
      if (isBlob && typeof value === "string") text = `${text}${start}b${value}`;
      else text = withLine(text, start, column.mapToDriverValue(value));
    }
    return digestOf(text);
  };
}

/** The digest of a row as the driver read it. `columns` are those of `digestedColumns`. */
export function digestOfStored(
  table: string,
  columns: readonly string[],
  row: Readonly<Record<string, unknown>>,
): bigint {
  let text = table;
  for (const column of columns) {
    const value = row[column];
    if (value !== null) text = withLine(text, `\n${column}=`, value);
  }
  return digestOf(text);
}

/** Adds a line for a value as the driver has it, so that no two rows have the same text. */
function withLine(text: string, start: string, value: unknown): string {
  if (typeof value === "string") return `${text}${start}t${value.length}:${value}`;
  return value instanceof Uint8Array ? `${text}${start}b${value.toHex()}` : `${text}${start}i${value}`;
}

const digestOf = (text: string): bigint => BigInt.asIntN(64, Bun.hash.xxHash64(text));
