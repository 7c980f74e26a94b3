/**
 * The position before the first row of a time or later, found by halving, where rows are in the order of their times.
 *
 * @param newest the position of the last row
 * @param next the time of the first row after a position; undefined where there is none
 */
export function startOf(since: number, newest: number, next: (after: number) => bigint | undefined): number {
  let [low, high] = [0, newest];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if ((next(middle) ?? since) < since) low = middle + 1;
    else high = middle;
  }
  return low;
}
