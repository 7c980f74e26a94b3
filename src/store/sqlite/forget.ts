import type { Database } from "bun:sqlite";
import type { Retention } from "../store.ts";

/** Deletes old rows that nothing refers to any more, a bounded number at a time. Called in a transaction. */
export type Forget = (retention: Retention, rowsMax: number) => number;

/** Which rows of each table, by which of the times. A key in flight has no outcome yet and stays. */
const FORGOTTEN: readonly (readonly [table: string, time: keyof Retention, where: string])[] = [
  ["idempotency_keys", "idempotencyKeysBefore", "created_at < ? AND status IS NOT NULL"],
  ["auth_sessions", "endedBefore", "expires_at < ?"],
  ["password_resets", "endedBefore", "expires_at < ?"],
  ["passkey_approvals", "endedBefore", "expires_at < ? AND used_at IS NULL"],
  ["webhook_deliveries", "deliveriesBefore", "created_at < ? AND status IN ('delivered', 'exhausted')"],
];

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
