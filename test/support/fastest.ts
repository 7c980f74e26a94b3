const TRIES = 5;

function durationMs(work: () => void): number {
  const startedAt = performance.now();
  work();
  return performance.now() - startedAt;
}

/** The time of the fastest of five runs, in ms: a machine that is busy for a moment does not slow all five. */
export const fastestMs = (work: () => void): number =>
  Math.min(...Array.from({ length: TRIES }, () => durationMs(work)));

/** How many times as long the work takes as another one, at least, in five comparisons of two runs in a row. */
export const leastRatio = (work: () => void, other: () => void): number =>
  Math.min(...Array.from({ length: TRIES }, () => durationMs(work) / durationMs(other)));
