import { SECOND_MS } from "./time.ts";

/**
 * Whether the machine's clock can be trusted. While it cannot, nothing is done that cannot be undone: no warrant expires, no
 * old row is deleted, no check ends because its lease has run out.
 */

/** The clock's time, and the times to compare it with. */
export type ClockReading = {
  /** The clock's time, epoch milliseconds. */
  readonly now: number;
  /** The time of the ledger's last commit, epoch milliseconds; -1 where there is none. */
  readonly lastRecordedAt: number;
  /** How far the clock has moved since the service started. */
  readonly wallElapsedMs: number;
  /** How far a clock that never jumps has moved since then. */
  readonly monotonicElapsedMs: number;
};

/** How far the clock is wrong, by each thing that it is compared with; 0 where it agrees. */
export type ClockDisagreement = {
  /** How far it is behind the ledger's last commit. */
  readonly behindLedgerMs: number;
  /** How far it has jumped since the service started; negative where it jumped back. */
  readonly jumpedMs: number;
};

/** A smaller difference is not a jump: NTP corrects the clock in far smaller steps. */
const JUMP_ALLOWED_MS = 5 * SECOND_MS;

/** Null where the clock agrees with the ledger and with the clock that never jumps. */
export function disagreementOf({
  now,
  lastRecordedAt,
  wallElapsedMs,
  monotonicElapsedMs,
}: ClockReading): ClockDisagreement | null {
  const behindLedgerMs = Math.max(0, lastRecordedAt - now);
  const differenceMs = wallElapsedMs - monotonicElapsedMs;
  const jumpedMs = Math.abs(differenceMs) > JUMP_ALLOWED_MS ? Math.round(differenceMs) : 0;
  return behindLedgerMs === 0 && jumpedMs === 0 ? null : { behindLedgerMs, jumpedMs };
}
