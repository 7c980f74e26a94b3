/** The time of the fastest of five runs, in ms: a machine that is busy for a moment does not slow all five. */
export function fastestMs(work: () => void): number {
  const durations = Array.from({ length: 5 }, () => {
    const startedAt = performance.now();
    work();
    return performance.now() - startedAt;
  });
  return Math.min(...durations);
}
