import { EVIDENCE_BYTES_MAX } from "../clauses/limits.ts";
import { type Refusal, refuse } from "../errors.ts";
import { MINUTE_MS } from "../time.ts";
import type { Purchase } from "./purchase.ts";

/**
 * What sellers answered is stored for replays. What was bought is kept within a quota of its organisation and mode, and what
 * cost nothing for a short time, within a smaller one (docs/x402, "Space").
 */

/** Whether a purchase was paid for: its content counts as bought, otherwise as free. */
export const isBought = ({ warrantId }: Pick<Purchase, "warrantId">): boolean => warrantId !== null;

/** What a content counts at least: a row, and the entries about it. */
const COUNTED_BYTES_MIN = 4_096;

export const countedBytes = (length: number): number => Math.max(COUNTED_BYTES_MIN, length);

/** What a purchase reserves before it holds: as much as an answer can count. */
export const RESERVED_BYTES = EVIDENCE_BYTES_MAX;

/** How many bytes of free content an organisation and mode may have. */
export const FREE_BYTES_MAX = 64 * 1024 * 1024;

/** How old a free content may become before the retention job deletes it. The job runs every ten minutes, so none is kept for longer than an hour. */
export const FREE_MS_MAX = 50 * MINUTE_MS;

/** Refuses a purchase whose answer might not fit into the quota. */
export const refuseFullQuota = (boughtBytes: number, quotaBytes: number): Refusal | null =>
  boughtBytes + RESERVED_BYTES <= quotaBytes
    ? null
    : refuse(
        "content_quota_exceeded",
        `What was bought takes ${boughtBytes} of HOLDFAST_CONTENT_BYTES (${quotaBytes}), and an answer may need ${RESERVED_BYTES}; it is deleted with its Idempotency-Keys.`,
      );
