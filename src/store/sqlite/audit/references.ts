import type { Database } from "bun:sqlite";
import { BY_ROW, type Did, inSlice, slicesOf } from "./slices.ts";

const ROWS_AT_ONCE = 10_000;

type Reference = {
  readonly table: string;
  readonly from: string;
  readonly parent: string;
  readonly to: string;
};

/**
 * Checks every foreign key of every table. SQLite's own `foreign_key_check` would read a table from one
 * snapshot, and meanwhile the write-ahead log could not be cut.
 */
export function* auditReferences(database: Database, did: Did): Generator<string> {
  for (const reference of referencesOf(database)) yield* auditReference(database, reference, did);
}

/** Each is of one column, and names the column that it refers to. */
export const referencesOf = (database: Database): readonly Reference[] =>
  database
    .query<Reference, []>(
      `SELECT tables.name AS "table", "from", keys."table" AS parent, "to"
       FROM sqlite_schema AS tables, pragma_foreign_key_list(tables.name) AS keys WHERE tables.type = 'table'`,
    )
    .all();

function* auditReference(
  database: Database,
  { table, from, parent, to }: Reference,
  did: Did,
): Generator<string> {
  const strays = database.query<{ rowid: bigint }, [bigint, bigint]>(
    `SELECT rowid FROM "${table}" AS child WHERE ${inSlice("rowid")} AND "${from}" IS NOT NULL
       AND NOT EXISTS (SELECT 1 FROM "${parent}" AS parent WHERE parent."${to}" = child."${from}")`,
  );
  for (const { after, last } of slicesOf(database, table, BY_ROW, ROWS_AT_ONCE, did)) {
    for (const { rowid } of strays.all(after, last))
      yield `the references: row ${rowid} of ${table} refers to a row of ${parent} that is not there`;
  }
}
