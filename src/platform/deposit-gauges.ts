import { SECOND_MS } from "../core/time.ts";
import type { Figures } from "./figures.ts";
import type { MakeGauge } from "./gauge-makers.ts";

/** The modes and assets are those of `HOLDFAST_TREASURY_SANDBOX` and `_LIVE`, so there are few. */
export function createDepositGauges(gauge: MakeGauge): (deposits: Figures["deposits"]) => void {
  const labels = ["mode", "asset"] as const;
  const blocksBehind = gauge(
    "holdfast_deposits_blocks_behind",
    "Confirmed blocks of a treasury's chain in which deposits were not looked for, when the chain answered last. Missing before it did.",
    labels,
  );
  const late = gauge(
    "holdfast_deposits_late_seconds",
    "For how long a treasury's deposits have not been found up to the newest confirmed block, with the age of the chain's newest block: it grows where a node stands still.",
    labels,
  );
  const unassigned = gauge(
    "holdfast_deposits_unassigned",
    "Transfers to a treasury that are nobody's deposits: nobody has registered their sender; ten thousand at most are counted.",
    labels,
  );
  const gone = gauge(
    "holdfast_deposits_gone",
    "Deposits from a chain that a reorganisation took out of it.",
    labels,
  );
  const stopped = gauge(
    "holdfast_deposits_stopped",
    "1 where nothing is credited, such as where a treasury's transfers do not add up to its balance, else 0.",
    labels,
  );
  return (deposits) => {
    for (const treasury of deposits) {
      const { mode, asset } = treasury;
      const of = { mode, asset };
      if (treasury.blocksBehind !== null) blocksBehind.set(of, treasury.blocksBehind);
      late.set(of, treasury.lateMs / SECOND_MS);
      unassigned.set(of, treasury.unassigned);
      gone.set(of, treasury.gone);
      stopped.set(of, treasury.stopped ? 1 : 0);
    }
  };
}
