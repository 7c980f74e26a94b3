import { SECOND_MS } from "../core/time.ts";

/** What the service counts as it happens. These are plain numbers, since every request and every commit is counted. */
export type Counters = {
  /** Requests answered, by method, route and status. */
  readonly requests: readonly Count[];
  /** How long they took, in seconds, by method and route. */
  readonly requestSeconds: readonly Distribution[];
  /** How many commands shared a transaction. */
  readonly commitCommands: Distribution;
  readonly commitSeconds: Distribution;
  /** Attempts to deliver a webhook, by outcome. */
  readonly attempts: readonly Count[];
  answered(answer: Answer): void;
  committed(commands: number, durationMs: number): void;
  /** An attempt to deliver a webhook; null where no response came. */
  webhookAttempted(code: number | null): void;
};

export type Answer = {
  readonly method: string;
  readonly route: string | null;
  readonly status: number;
  readonly durationMs: number;
};

export type Labels = Readonly<Record<string, string>>;

/** One series of a counter. */
export type Count = { readonly labels: Labels; value: number };

/** One series of a histogram: how many values fell between its bounds. */
export type Distribution = {
  readonly labels: Labels;
  /** Upper bounds, ascending. */
  readonly bounds: readonly number[];
  /**
   * How many values are in each range, one range more than `bounds`. A value counts at the first bound that
   * it does not exceed, or at the end.
   */
  readonly counts: number[];
  sum: number;
};

const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const COMMIT_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];
const BATCH_SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/** All other methods share one count, since anybody may send any method. */
const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
const OTHER = "other";

/** The requests of one route and method. */
type RequestsOfRoute = { readonly seconds: Distribution; readonly byStatus: Map<number, Count> };

export function createCounters(): Counters {
  const requests: Count[] = [];
  const requestSeconds: Distribution[] = [];
  const byRoute = new Map<string, Map<string, RequestsOfRoute>>();
  const commitCommands = emptyDistribution({}, BATCH_SIZES);
  const commitSeconds = emptyDistribution({}, COMMIT_SECONDS);
  const attempts: Count[] = [];
  const byOutcome = new Map<string, Count>();

  function addRoute(method: string, route: string): RequestsOfRoute {
    const seconds = emptyDistribution({ method, route }, REQUEST_SECONDS);
    requestSeconds.push(seconds);
    const ofRoute = { seconds, byStatus: new Map<number, Count>() };
    byRoute.getOrInsertComputed(route, () => new Map()).set(method, ofRoute);
    return ofRoute;
  }

  return {
    ...{ requests, requestSeconds, commitCommands, commitSeconds, attempts },
    answered(answer) {
      const method = METHODS.has(answer.method) ? answer.method : OTHER;
      const route = answer.route ?? OTHER;
      const { seconds, byStatus } = byRoute.get(route)?.get(method) ?? addRoute(method, route);
      observe(seconds, answer.durationMs / SECOND_MS);
      byStatus.getOrInsertComputed(answer.status, (status) =>
        added(requests, { method, route, status: String(status) }),
      ).value += 1;
    },
    committed(commands, durationMs) {
      observe(commitCommands, commands);
      observe(commitSeconds, durationMs / SECOND_MS);
    },
    webhookAttempted(code) {
      const delivered = code !== null && code >= 200 && code <= 299;
      const outcome = delivered ? "delivered" : code === null ? "no_response" : "refused";
      byOutcome.getOrInsertComputed(outcome, () => added(attempts, { outcome })).value += 1;
    },
  };
}

function added(counts: Count[], labels: Labels): Count {
  const count = { labels, value: 0 };
  counts.push(count);
  return count;
}

const emptyDistribution = (labels: Labels, bounds: readonly number[]): Distribution => ({
  ...{ labels, bounds, sum: 0 },
  counts: new Array<number>(bounds.length + 1).fill(0),
});

function observe(distribution: Distribution, value: number): void {
  const { bounds, counts } = distribution;
  let at = 0;
  while (at < bounds.length && value > (bounds[at] ?? 0)) at += 1;
  counts[at] = (counts[at] ?? 0) + 1;
  distribution.sum += value;
}
