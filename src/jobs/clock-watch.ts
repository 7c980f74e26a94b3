import { type ClockDisagreement, disagreementOf } from "../core/clock.ts";

/** Watches the machine's clock for as long as the service runs. */
export type ClockWatch = {
  /** How far the clock is wrong now; null where it agrees. */
  disagreement(): ClockDisagreement | null;
  /** The clock's time where it agrees, epoch milliseconds, else null. A moment later it may jump. */
  agreedNow(): number | null;
};

type Options = {
  /** The clock that is watched, epoch milliseconds. */
  readonly now: () => number;
  /** A clock that never jumps, in milliseconds. */
  readonly monotonicNow: () => number;
  /** The time of the ledger's last commit, epoch milliseconds. */
  readonly lastRecordedAt: () => number;
  /** Is called once when the clock begins to disagree. */
  readonly onDisagrees: (disagreement: ClockDisagreement) => void;
  /** Is called once when it agrees again. */
  readonly onAgrees: () => void;
};

/** Watches from now on; earlier jumps are not known. The clocks are compared whenever somebody asks. */
export function createClockWatch(options: Options): ClockWatch {
  const { now, monotonicNow, lastRecordedAt, onDisagrees, onAgrees } = options;
  const startedAt = { wall: now(), monotonic: monotonicNow() };
  let disagreed = false;
  function disagreementAt(wall: number): ClockDisagreement | null {
    const disagreement = disagreementOf({
      now: wall,
      lastRecordedAt: lastRecordedAt(),
      wallElapsedMs: wall - startedAt.wall,
      monotonicElapsedMs: monotonicNow() - startedAt.monotonic,
    });
    if (disagreement && !disagreed) onDisagrees(disagreement);
    if (!disagreement && disagreed) onAgrees();
    disagreed = disagreement !== null;
    return disagreement;
  }
  return {
    disagreement: () => disagreementAt(now()),
    agreedNow() {
      const wall = now();
      return disagreementAt(wall) === null ? wall : null;
    },
  };
}
