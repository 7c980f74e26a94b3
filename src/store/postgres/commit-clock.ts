import type { BatchTime } from "../batch.ts";

/**
 * The times of transactions. Within an organisation, and among all that one process writes, the recorded times never run backwards,
 * whatever the clocks do.
 */
export type CommitClock = {
  /** The times of a transaction, after what its organisations have recorded. */
  timeAfter(recordedAt: number): BatchTime;
  /** Called when records of this time are committed. */
  recorded(time: BatchTime): void;
  /** The time in the newest record that this process knows of; epoch milliseconds, -1 where there is none. */
  lastRecordedAt(): number;
};

/** @param newest the time in the newest record, at the start */
export function createCommitClock(now: () => number, steadyNow: () => number, newest: number): CommitClock {
  /** How far the clock was ahead of the one that never jumps, at the first transaction. */
  let startedMs: number | null = null;
  let last = newest;
  return {
    timeAfter(before) {
      const time = now();
      const recordedAt = Math.max(time, before, last);
      const steady = steadyNow();
      startedMs ??= recordedAt - steady;
      return { now: time, recordedAt, steadyAt: Math.round(startedMs + steady) };
    },
    recorded({ recordedAt }) {
      last = Math.max(last, recordedAt);
    },
    lastRecordedAt: () => last,
  };
}
