import type { Database } from "bun:sqlite";
import { DIGEST, digestedColumns, digestOfStored } from "../sql/row-digest.ts";

/** The tables whose rows have digests. */
export const digestedTables = (raw: Database): readonly string[] =>
  raw
    .query<{ name: string }, [string]>(
      `SELECT tables.name FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
       WHERE tables.type = 'table' AND columns.name = ?`,
    )
    .all(DIGEST)
    .map(({ name }) => name);

export const hasRows = (raw: Database, table: string): boolean =>
  raw.query(`SELECT 1 FROM ${table} LIMIT 1`).get() !== null;

const ROWS_AT_ONCE = 200;

/**
 * Gives every row of a table its digest, in the transaction that adds the column. From then on a row without one was not written by
 * Holdfast. Its triggers must be away, since they refuse to change what was recorded.
 *
 * @param onProgress is called with how many rows are done, and how many there are
 */
export function fillDigests(
  raw: Database,
  table: string,
  onProgress: (done: number, total: number) => void = () => {},
): void {
  const all = raw
    .query<{ name: string }, [string]>("SELECT name FROM pragma_table_info(?)")
    .all(table)
    .map(({ name }) => name);
  const columns = digestedColumns(table, all);
  const next = raw.query<
    Readonly<Record<string, unknown>> & { readonly row_number: bigint },
    [bigint, number]
  >(
    `SELECT rowid AS row_number, ${columns.map((column) => `"${column}"`).join(", ")} FROM ${table}
     WHERE rowid > ? ORDER BY rowid LIMIT ?`,
  );
  const give = raw.query<unknown, [bigint, bigint]>(`UPDATE ${table} SET ${DIGEST} = ? WHERE rowid = ?`);
  const total = Number(
    raw.query<{ rows: bigint | number }, []>(`SELECT count(*) AS rows FROM ${table}`).get()?.rows,
  );
  let done = 0;
  for (let after = -(2n ** 63n); ; ) {
    const rows = next.all(after, ROWS_AT_ONCE);
    for (const row of rows) give.run(digestOfStored(table, columns, row), row.row_number);
    const last = rows.at(-1);
    if (!last) return;
    after = last.row_number;
    done += rows.length;
    onProgress(done, total);
  }
}
