import type { Database } from "bun:sqlite";
import { FORGOTTEN } from "../sql/forgotten.ts";
import type { Retention } from "../store.ts";

/** Deletes a limited number of old rows that nothing refers to any more. Called in a transaction. */
export type Forget = (retention: Retention, rowsMax: number) => number;

export function createForget(database: Database): Forget {
  const statements = FORGOTTEN.map(([table, time, where]) => ({
    time,
    statement: database.prepare<unknown, [number, number]>(
      `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE ${where} LIMIT ?)`,
    ),
  }));
  return (retention, rowsMax) =>
    statements.reduce(
      (forgotten, { time, statement }) => forgotten + statement.run(retention[time], rowsMax).changes,
      0,
    );
}
