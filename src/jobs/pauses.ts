import { MINUTE_MS, SECOND_MS } from "../core/time.ts";

/** After a failure something is asked again after so long; twice as long each time, until the second. */
const FIRST_PAUSE_MS = 5 * SECOND_MS;
const PAUSE_MS_MAX = 10 * MINUTE_MS;

/** When something is asked again: soon while it answers, and ever more seldom while it does not. */
export type Pauses = {
  isDue(): boolean;
  answered(nextMs: number): void;
  failed(): void;
};

/** @param random from 0 up to 1, without 1 */
export function createPauses(monotonicNow: () => number, random: () => number): Pauses {
  let nextAt = 0;
  let failures = 0;
  return {
    isDue: () => monotonicNow() >= nextAt,
    answered(nextMs) {
      failures = 0;
      nextAt = monotonicNow() + nextMs;
    },
    failed() {
      const pauseMs = Math.min(PAUSE_MS_MAX, FIRST_PAUSE_MS * 2 ** Math.min(failures, 20));
      failures += 1;
      nextAt = monotonicNow() + pauseMs * (0.5 + random() / 2);
    },
  };
}
