import { ENDED_DELIVERY_STATUSES } from "../../core/webhook.ts";
import type { Retention } from "../store.ts";
import { literals } from "./columns.ts";

/**
 * The old rows of each table, and the time that they must be older than. A key in flight has no outcome yet,
 * and stays.
 */
export const FORGOTTEN: readonly (readonly [table: string, time: keyof Retention, where: string])[] = [
  // Two, since each has an index of its own.
  [
    "idempotency_keys",
    "idempotencyKeysBefore",
    "created_at < ? AND status IS NOT NULL AND content_hash IS NULL",
  ],
  ["idempotency_keys", "idempotencyKeysBefore", "created_at < ? AND content_hash IS NOT NULL"],
  ["auth_sessions", "endedBefore", "expires_at < ?"],
  ["password_resets", "endedBefore", "expires_at < ?"],
  ["messaging_codes", "endedBefore", "expires_at < ?"],
  ["passkey_approvals", "endedBefore", "expires_at < ? AND used_at IS NULL"],
  [
    "webhook_deliveries",
    "deliveriesBefore",
    `created_at < ? AND status IN (${literals(ENDED_DELIVERY_STATUSES)})`,
  ],
  ["notices", "deliveriesBefore", "created_at < ? AND claimed_until IS NULL AND next_attempt_at IS NULL"],
];
