import type { Database } from "bun:sqlite";
import type { BatchTime } from "../batch.ts";

/** The times of transactions. The recorded times never run backwards, whatever the clock does. */
export type CommitClock = {
  /**
   * Called when a transaction has begun, with the ledger locked. `isOthers`: another process has committed
   * since our last transaction.
   */
  begin(): { readonly time: BatchTime; readonly isOthers: boolean };
  /** Called when records of this time are on disk. What records nothing moves no time ahead. */
  recorded(time: BatchTime): void;
  /**
   * The time in the newest record, as far as this process knows; epoch milliseconds, -1 where there is no
   * record. It is known since the ledger was opened, so that to ask reads nothing.
   */
  lastRecordedAt(): number;
};

/** The newest record of each table whose rows carry the time of their commit, and the newest mark of retention. */
const NEWEST_RECORDS = [
  "SELECT recorded_at FROM trace ORDER BY position DESC LIMIT 1",
  "SELECT recorded_at FROM postings ORDER BY position DESC LIMIT 1",
  "SELECT recorded_at FROM audit_entries ORDER BY rowid DESC LIMIT 1",
  "SELECT retention_marks ->> '$[#-1].recordedAt' AS recorded_at FROM instances",
];

export function createCommitClock(writer: Database, now: () => number, steadyNow: () => number): CommitClock {
  const dataVersion = writer.query<{ data_version: bigint }, []>("PRAGMA data_version");
  const newest = NEWEST_RECORDS.map((text) => writer.query<{ recorded_at: bigint }, []>(text));
  let version: bigint | undefined;
  /** How far the clock was ahead of the one that never jumps, at the first transaction. */
  let startedMs: number | null = null;
  const readLast = () => Math.max(...newest.map((query) => Number(query.get()?.recorded_at ?? -1n)));
  let last = readLast();
  return {
    begin() {
      const current = dataVersion.get()?.data_version;
      const isOthers = current !== version;
      version = current;
      if (isOthers) last = Math.max(last, readLast());
      const time = now();
      const recordedAt = Math.max(time, last);
      const steady = steadyNow();
      startedMs ??= recordedAt - steady;
      return { time: { now: time, recordedAt, steadyAt: Math.round(startedMs + steady) }, isOthers };
    },
    recorded({ recordedAt }) {
      last = recordedAt;
    },
    lastRecordedAt: () => last,
  };
}
