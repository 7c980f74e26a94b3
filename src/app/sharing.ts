import type { RateLimits } from "../core/rate.ts";
import { MINUTE_MS, SECOND_MS } from "../core/time.ts";
import type { RateCounters } from "../http/limits.ts";
import { createSharedRateCounters } from "../http/rate-exchange.ts";
import type { Job } from "../jobs/scheduler.ts";
import type { SharedMemory } from "../store/shared-memory.ts";

/** How often instances tell one another of their callers. */
const EXCHANGE_MS = SECOND_MS / 2;

/**
 * The counters of requests, and the jobs of what instances remember together. Each instance runs these jobs, at the same time as the
 * others.
 */
export function shareWithOthers(
  shared: SharedMemory | null,
  limits: RateLimits,
  now: () => number,
): { readonly options: { readonly rateCounters?: RateCounters }; readonly jobs: readonly Job[] } {
  if (shared === null) return { options: {}, jobs: [] };
  const rateCounters = createSharedRateCounters(limits);
  return {
    options: { rateCounters },
    jobs: [
      {
        name: "rates",
        doneBy: "each",
        everyMs: EXCHANGE_MS,
        run: () => rateCounters.exchange(shared.exchangeCounts, now()),
      },
      { name: "shared-memory", doneBy: "each", everyMs: MINUTE_MS, run: shared.forgetEnded },
    ],
  };
}
