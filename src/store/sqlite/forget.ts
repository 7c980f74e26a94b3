import type { Database } from "bun:sqlite";
import { ENDED_DELIVERY_STATUSES } from "../../core/webhook.ts";
import type { Retention } from "../store.ts";
import { literals } from "./columns.ts";

/** Deletes old rows that nothing refers to any more, a bounded number at a time. Called in a transaction. */
export type Forget = (retention: Retention, rowsMax: number) => number;

/** Which rows of each table, by which of the times. A key in flight has no outcome yet and stays. */
const FORGOTTEN: readonly (readonly [table: string, time: keyof Retention, where: string])[] = [
  [
    "idempotency_keys",
    "idempotencyKeysBefore",
    "created_at < ? AND status IS NOT NULL AND content_hash IS NULL",
  ],
  ["auth_sessions", "endedBefore", "expires_at < ?"],
  ["password_resets", "endedBefore", "expires_at < ?"],
  ["passkey_approvals", "endedBefore", "expires_at < ? AND used_at IS NULL"],
  [
    "webhook_deliveries",
    "deliveriesBefore",
    `created_at < ? AND status IN (${literals(ENDED_DELIVERY_STATUSES)})`,
  ],
];

/** Keys whose answer has a body that is kept by its hash. A body may have 10 MiB, so that few are forgotten at a time. */
const KEYS_WITH_CONTENT_MAX = 4;

/**
 * Deletes keys, and with each the body that it replays, unless another key or a purchase that has not ended needs that. So nobody
 * has to look through the bodies: whatever is kept belongs to one of these.
 */
function createForgetContents(database: Database): Forget {
  const forgetKeys = database.prepare<{ content_hash: string }, [number, number]>(
    `DELETE FROM idempotency_keys WHERE rowid IN (
       SELECT rowid FROM idempotency_keys WHERE created_at < ? AND content_hash IS NOT NULL LIMIT ?
     ) RETURNING content_hash`,
  );
  const forgetContent = database.prepare<unknown, [string]>(
    `DELETE FROM contents WHERE hash = ?1
       AND NOT EXISTS (SELECT 1 FROM idempotency_keys WHERE content_hash = ?1)
       AND NOT EXISTS (SELECT 1 FROM purchases WHERE response_hash = ?1 AND phase <> 'ended')`,
  );
  return ({ idempotencyKeysBefore }, rowsMax) =>
    forgetKeys
      .all(idempotencyKeysBefore, Math.min(rowsMax, KEYS_WITH_CONTENT_MAX))
      .reduce((forgotten, { content_hash: hash }) => forgotten + 1 + forgetContent.run(hash).changes, 0);
}

export function createForget(database: Database): Forget {
  const forgetContents = createForgetContents(database);
  const statements = FORGOTTEN.map(([table, time, where]) => ({
    time,
    statement: database.prepare<unknown, [number, number]>(
      `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE ${where} LIMIT ?)`,
    ),
  }));
  return (retention, rowsMax) =>
    statements.reduce(
      (forgotten, { time, statement }) => forgotten + statement.run(retention[time], rowsMax).changes,
      forgetContents(retention, rowsMax),
    );
}
