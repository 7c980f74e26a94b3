/**
 * Requests are counted in fixed windows of 60 seconds, in the memory of the process (docs/idempotency, "Limits"). Instances that share
 * a ledger tell one another of their counters.
 */

export const BUCKETS = ["read", "write", "bench"] as const;
export type Bucket = (typeof BUCKETS)[number];

/** Requests per window of each bucket. */
export type RateLimits = Readonly<Record<Bucket, number>>;

export const rateLimitsOf = (read = 600, write = 60, bench = 30): RateLimits => ({ read, write, bench });

export const WINDOW_MS = 60_000;

/** The budget of a caller's window after a request: what the `RateLimit-*` headers say. */
export type Budget = {
  readonly limit: number;
  readonly remaining: number;
  readonly resetSeconds: number;
  readonly exceeded: boolean;
};

/** The number of the current window. Windows start at multiples of their length, at the same time for all callers. */
export const windowOf = (now: number): number => Math.floor(now / WINDOW_MS);

export const secondsToReset = (now: number): number => Math.ceil((WINDOW_MS - (now % WINDOW_MS)) / 1_000);

/** The budget when `used` requests of the window, this one included, have been seen. */
export const budgetOf = (limit: number, used: number, now: number): Budget => ({
  limit,
  remaining: Math.max(0, limit - used),
  resetSeconds: secondsToReset(now),
  exceeded: used > limit,
});

/** How many requests of a caller an instance has counted in a window. */
export type CallerCount = { readonly caller: string; readonly used: number };

/** What the other instances have counted in a window. */
export type CountsOfOthers = {
  readonly used: ReadonlyMap<string, number>;
  /** How many instances count, with the one that asks. */
  readonly instances: number;
};

/**
 * Tells the other instances what this one has counted, and answers what they have.
 *
 * @param window its number
 * @param own the whole counts, not what was added: telling it twice changes nothing
 */
export type ExchangeCounts = (window: number, own: readonly CallerCount[]) => Promise<CountsOfOthers>;
