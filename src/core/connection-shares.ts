/** How many connections there may be (docs/operating, "A proxy in front"). */
export type ConnectionLimits = {
  readonly all: number;
  /** For one address that is no trusted proxy. */
  readonly each: number;
};

/** One address has at most this part of all connections. */
const PART_OF_EACH = 8;

export const limitsOfConnections = (all: number): ConnectionLimits => ({
  all,
  each: Math.max(1, Math.floor(all / PART_OF_EACH)),
});

/**
 * The most connections that a process with this many descriptors may have. An eighth of the descriptors, and never fewer than
 * `spare`, stay free for what the service itself opens.
 *
 * @param inUse what the service has open before the first connection
 */
export const connectionsFor = (descriptors: number, inUse: number, spare: number): number =>
  Math.max(1, descriptors - inUse - Math.max(spare, Math.floor(descriptors / 8)));

/**
 * How many of its connections each address keeps, in the order of `counts`: no more than its share, and where all together are
 * still too many, those with the most lose first.
 */
export function sharesOf(counts: readonly number[], { all, each }: ConnectionLimits): number[] {
  const sumAt = (level: number): number => counts.reduce((sum, count) => sum + Math.min(count, level), 0);
  let level = each;
  if (sumAt(level) > all) {
    let low = 0;
    while (low + 1 < level) {
      const middle = (low + level) >> 1;
      if (sumAt(middle) > all) level = middle;
      else low = middle;
    }
    level = low;
  }
  // What is left over is too little to give one more to each, so some get one more and others do not.
  let left = level < each ? all - sumAt(level) : 0;
  return counts.map((count) => {
    if (count <= level || left === 0) return Math.min(count, level);
    left -= 1;
    return level + 1;
  });
}
