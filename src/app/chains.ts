import type { Config, Secrets } from "../config.ts";
import type { Context } from "../services/context.ts";
import { chainAnchoring } from "./anchoring.ts";
import { payoutJobs } from "./payouts.ts";
import { watchingTreasuries } from "./watching.ts";

/** What the server does on chains by itself: anchors of the log, deposits and payouts. */
export function onChains(ctx: Context, config: Config, secrets: Secrets) {
  const anchoring = chainAnchoring(ctx, config, secrets);
  const watching = watchingTreasuries(ctx, config);
  return {
    ...{ anchoring, deposits: watching.figures },
    jobs: [...anchoring.jobs, ...watching.jobs, ...payoutJobs(ctx, config, secrets)],
  };
}
