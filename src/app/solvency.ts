import type { Config } from "../config.ts";
import type { SeenTreasury } from "../core/solvency/judgement.ts";
import { MINUTE_MS, SECOND_MS } from "../core/time.ts";
import type { Job } from "../jobs/scheduler.ts";
import { solvencyWatch, statementsJob } from "../jobs/solvency.ts";
import { logInfo, logWarning } from "../platform/log.ts";
import { steadyNow } from "../platform/steady-clock.ts";
import type { Context } from "../services/context.ts";
import { onceAcknowledged } from "./once-acknowledged.ts";

export type Solvency = {
  readonly jobs: readonly Job[];
  readonly seen: () => readonly SeenTreasury[];
};

/** What the chains hold beside what the ledger owes, and the statements of it (docs/solvency). */
export function solvencyJobs(ctx: Context, { solvencyHours }: Config): Solvency {
  const watch = solvencyWatch(ctx, { monotonicNow: steadyNow, onShort: logShort });
  const sign = onceAcknowledged(statementsJob(solvencyHours));
  const watching: Job = {
    ...{ name: "solvency", everyMs: MINUTE_MS, firstMs: 2 * SECOND_MS },
    // Each remembers what it has seen, for its own `/readyz` and console.
    doneBy: "each",
    run: watch.run,
  };
  const signing: Job = {
    ...{ name: "solvency-statements", doneBy: "one", everyMs: MINUTE_MS, firstMs: 5 * SECOND_MS },
    begin: () => sign,
  };
  return {
    jobs: [...(ctx.treasuries.length > 0 ? [watching] : []), ...(solvencyHours > 0 ? [signing] : [])],
    seen: watch.seen,
  };
}

function logShort({ mode, asset, chain, seen }: SeenTreasury, isShort: boolean): void {
  const about = { mode, asset, chain, block: seen?.block ?? null };
  if (isShort) logWarning("the chain holds less than the ledger owes; holdfast solvency shows it", about);
  else logInfo("the chain holds what the ledger owes again", about);
}
