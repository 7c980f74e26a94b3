import { DAY_MS, HOUR_MS } from "./time.ts";

/**
 * How long something has been kept, counted in the time that a server ran. The clock cannot say it: it may
 * jump, and goes on while nothing runs. So now and then a mark is set, which says how long servers had run by
 * then, and which records there were: those with an earlier time than the mark's, since recorded times never
 * run back.
 */
export type RetentionMark = {
  /** The time of its commit. What is recorded later never has an earlier time. */
  readonly recordedAt: number;
  /** How long servers had run until then, in all. */
  readonly ranMs: number;
};

/** Marks of the last two days stand an hour apart, so that what is kept for a day goes an hour later at most. */
const CLOSE_FOR_MS = 2 * DAY_MS;
const CLOSE_MS = HOUR_MS;
const APART_MS = DAY_MS;

/**
 * Sets a mark. Of the others it keeps what the longest limit needs.
 *
 * @param marks oldest first
 * @param elapsedMs how long a server has run since the newest of them
 * @param longestMs the longest time that anything is kept
 */
export function addMark(
  marks: readonly RetentionMark[],
  elapsedMs: number,
  recordedAt: number,
  longestMs: number,
): readonly RetentionMark[] {
  const ranMs = (marks.at(-1)?.ranMs ?? 0) + elapsedMs;
  const all = [...marks, { recordedAt, ranMs }];
  const oldest = all.findLastIndex((mark) => ranMs - mark.ranMs >= longestMs);
  const kept: RetentionMark[] = [];
  for (const [index, mark] of all.entries()) {
    if (index < oldest) continue;
    const before = kept.at(-1);
    const next = all[index + 1];
    const gapMs = next && ranMs - next.ranMs >= CLOSE_FOR_MS ? APART_MS : CLOSE_MS;
    if (!before || !next || next.ranMs - before.ranMs > gapMs) kept.push(mark);
  }
  return kept;
}

/**
 * The time before which everything was recorded at least `limitMs` of running time ago; 0 where that is not
 * known of anything.
 */
export function recordedBefore(marks: readonly RetentionMark[], limitMs: number): number {
  const ranMs = marks.at(-1)?.ranMs ?? 0;
  return marks.findLast((mark) => ranMs - mark.ranMs >= limitMs)?.recordedAt ?? 0;
}
