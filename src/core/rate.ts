/** Requests are counted in fixed windows of 60 seconds, in the memory of the process (docs/idempotency, "Limits"). */

export type Bucket = "read" | "write" | "bench";

/** Requests per window of each bucket. */
export type RateLimits = Readonly<Record<Bucket, number>>;

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
