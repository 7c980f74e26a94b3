import { SECOND_MS } from "../core/time.ts";
import type { Figures } from "./figures.ts";
import type { MakeGauge } from "./gauge-makers.ts";

/** The tokens are those of the settings, so there are few. A figure that is not known is missing. */
export function createTreasuryGauges(gauge: MakeGauge): (treasuries: Figures["treasuries"]) => void {
  const labels = ["mode", "asset"] as const;
  const balance = gauge(
    "holdfast_treasury_balance",
    "What the wallet on the chain held at the last confirmed block that was seen, in the asset's smallest unit.",
    labels,
  );
  const block = gauge("holdfast_treasury_block", "The number of that block.", labels);
  const short = gauge(
    "holdfast_treasury_short",
    "1 where that was less than the ledger owed at that block, else 0. Missing where it is not known.",
    labels,
  );
  const age = gauge(
    "holdfast_treasury_age_seconds",
    "How old the chain's newest block is that was seen. Missing where it was not seen since the start.",
    labels,
  );
  return (treasuries) => {
    for (const one of [balance, block, short, age]) one.reset();
    for (const { mode, asset, judgement, seen } of treasuries) {
      if (seen === null) continue;
      balance.set({ mode, asset }, Number(seen.balance));
      block.set({ mode, asset }, seen.block);
      age.set({ mode, asset }, seen.ageMs / SECOND_MS);
      if (judgement !== "unknown") short.set({ mode, asset }, judgement === "short" ? 1 : 0);
    }
  };
}
