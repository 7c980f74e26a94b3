import type { Figures } from "./figures.ts";
import type { MakeGauge } from "./gauge-makers.ts";

/** The tokens are those of the settings, so there are few. */
export function createPayoutGauges(gauge: MakeGauge): (rails: Figures["rails"]) => void {
  const labels = ["mode", "asset"] as const;
  const underWay = gauge(
    "holdfast_payouts_under_way",
    "Payouts on a chain that are not accounted for.",
    labels,
  );
  const stopped = gauge(
    "holdfast_payouts_stopped",
    "1 where payouts of a token have stopped until the operator resumes them, else 0.",
    labels,
  );
  const waiting = gauge(
    "holdfast_payouts_waiting",
    "Payees that are owed something on a chain and wait, by why; ten thousand at most are counted.",
    [...labels, "why"] as const,
  );
  return (rails) => {
    waiting.reset();
    for (const { mode, asset, ...of } of rails) {
      underWay.set({ mode, asset }, of.underWay);
      stopped.set({ mode, asset }, of.stopped ? 1 : 0);
      for (const [why, count] of Object.entries(of.waiting)) waiting.set({ mode, asset, why }, count);
    }
  };
}
