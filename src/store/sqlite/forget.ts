import type { Database } from "bun:sqlite";
import { ENDED_DELIVERY_STATUSES } from "../../core/webhook.ts";
import type { Retention } from "../store.ts";
import { literals } from "./columns.ts";

/** Deletes a limited number of old rows that nothing refers to any more. Called in a transaction. */
export type Forget = (retention: Retention, rowsMax: number) => number;

/**
 * The old rows of each table, and the time that they must be older than. A key in flight has no outcome yet,
 * and stays.
 */
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

/** How many keys with a content are deleted at a time: a content may have 10 MiB. */
const KEYS_WITH_CONTENT_MAX = 4;

/**
 * Deletes idempotency keys with a content. The content is deleted too, unless another key or an unfinished
 * purchase needs it. So no search for unused contents is needed: every stored one has a key or a purchase.
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
