import type { Registry } from "prom-client";
import { SECOND_MS } from "../core/time.ts";
import { type Count, createCounter, createHistogram, type Distribution } from "./counts.ts";

const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** A stranger may send any method: the others share one series. */
const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
const OTHER = "other";

/** The requests of one route and method. */
type CountsOfRoute = { readonly seconds: Distribution; readonly byStatus: Map<number, Count> };

/** Counts an answer. `route` is the route's pattern; null where there is no such route. */
export type RequestCounts = (answer: {
  readonly method: string;
  readonly route: string | null;
  readonly status: number;
  readonly durationMs: number;
}) => void;

export function createRequestCounts(registers: Registry[]): RequestCounts {
  const labelNames = ["method", "route"];
  const requests = createCounter({
    name: "holdfast_http_requests_total",
    help: "Requests answered, by the route's pattern; route other: there is none.",
    labelNames: [...labelNames, "status"],
    registers,
  });
  const seconds = createHistogram({
    name: "holdfast_http_request_duration_seconds",
    help: "From a request's arrival to its answer, its body and what it waits for included.",
    labelNames,
    buckets: REQUEST_SECONDS,
    registers,
  });
  const byRoute = new Map<string, Map<string, CountsOfRoute>>();

  function newCounts(method: string, route: string): CountsOfRoute {
    const counts = { seconds: seconds.series({ method, route }), byStatus: new Map<number, Count>() };
    byRoute.set(route, (byRoute.get(route) ?? new Map<string, CountsOfRoute>()).set(method, counts));
    return counts;
  }

  function newCount({ byStatus }: CountsOfRoute, method: string, route: string, status: number): Count {
    const count = requests.series({ method, route, status: String(status) });
    byStatus.set(status, count);
    return count;
  }

  return ({ method: given, route: pattern, status, durationMs }) => {
    const method = METHODS.has(given) ? given : OTHER;
    const route = pattern ?? OTHER;
    const counts = byRoute.get(route)?.get(method) ?? newCounts(method, route);
    counts.seconds.observe(durationMs / SECOND_MS);
    const count = counts.byStatus.get(status) ?? newCount(counts, method, route, status);
    count.value += 1;
  };
}
