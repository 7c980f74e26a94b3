import { type Counters, createCounters } from "./counters.ts";
import type { Figures } from "./figures.ts";

export type { Figures } from "./figures.ts";

/** Counts what happens, and writes the counters and the figures for Prometheus. */
export type Metrics = Pick<Counters, "answered" | "committed" | "webhookAttempted"> & {
  /** The text for Prometheus. `figures` is called when everything else is ready. */
  text(figures: () => Promise<Figures>): Promise<string>;
};

/**
 * prom-client takes 10 ms to load and to set up. So the first request for metrics loads it, not the start. By `require`, for the
 * reason in `passkeys.ts`.
 */
const metricsText = (): typeof import("./metrics-text.ts") => require("./metrics-text.ts");

export function createMetrics(): Metrics {
  const { answered, committed, webhookAttempted, ...counters } = createCounters();
  const startedAt = Date.now() - process.uptime() * 1_000;
  let write: ReturnType<ReturnType<typeof metricsText>["createMetricsText"]> | null = null;
  return {
    ...{ answered, committed, webhookAttempted },
    async text(figures) {
      write ??= metricsText().createMetricsText(counters, startedAt);
      return write(await figures());
    },
  };
}
