import type { Config } from "../config.ts";
import { HOUR_MS, SECOND_MS } from "../core/time.ts";
import type { Treasury } from "../core/treasury.ts";
import { type StopReason, type TreasuryWatch, watchKey } from "../core/treasury-watch.ts";
import { caip2Of } from "../core/x402/chains.ts";
import { depositsJob } from "../jobs/deposits.ts";
import type { Job } from "../jobs/scheduler.ts";
import type { ChainAsker } from "../platform/ask-chain.ts";
import type { Figures } from "../platform/figures.ts";
import { createFaultLog, logError, logInfo, logWarning } from "../platform/log.ts";
import { steadyNow } from "../platform/steady-clock.ts";
import { treasuryStates } from "../services/chain/treasury-states.ts";
import { SPAN_FIRST, type Watching, type WatchTrouble } from "../services/chain/watch.ts";
import type { Context } from "../services/context.ts";
import { heldJob } from "./held-job.ts";

/** Deposits that treasuries receive on chains (docs/money, "Deposits on a chain"). */

/** viem takes 20 ms to load, so it is loaded with the first run of a job. By `require`, for the reason in `platform/passkeys.ts`. */
const treasuryChain = (): typeof import("../platform/treasury-chain.ts") =>
  require("../platform/treasury-chain.ts");
const askChain = (): typeof import("../platform/ask-chain.ts") => require("../platform/ask-chain.ts");

const TROUBLES = {
  away: "the chain of a treasury does not answer; it is asked again",
  behind: "the node of a treasury's chain is behind what was looked at; it is asked again",
  refused: "a node does not tell the transfers of a treasury; it is asked again",
  wrong: "a node's transfers of a treasury are not what was asked for; it is asked again",
  unit_differs:
    "nothing is credited: the token of a treasury has other decimals than its asset has here; it is asked again",
} as const;

const STOPPED = {
  balance_differs:
    "nothing is credited, and no payout begins: a treasury's transfers do not add up to its balance; the token may take a fee, or the node hides logs",
  asset_changed: "nothing is credited: the token of a treasury stood for another asset",
  chain_replaced: "nothing is credited: the chain of a treasury has none of the blocks that are known",
  too_large: "nothing is credited: a treasury's transfers add up to more than the ledger can hold",
} as const satisfies Record<StopReason, string>;

export type WatchingTreasuries = {
  readonly jobs: readonly Job[];
  /** Of each treasury, what its job knows. */
  readonly figures: () => Promise<Figures["deposits"]>;
};

/** A job for each treasury, those of live money first. */
export function watchingTreasuries(
  ctx: Context,
  { treasury: { rules }, evmRpc }: Config,
): WatchingTreasuries {
  let asker: ChainAsker | null = null;
  const asking = (): ChainAsker => {
    asker ??= askChain().createChainAsker(evmRpc);
    return asker;
  };
  const onJudged = judgedLog();
  const watched = ctx.treasuries
    .toSorted((one, other) => Number(one.mode === "sandbox") - Number(other.mode === "sandbox"))
    .map((treasury) => {
      let made: Watching | null = null;
      const about = () => aboutOf(treasury);
      const watching = (): Watching => {
        made ??= {
          ...{ treasury, span: SPAN_FIRST },
          chain: treasuryChain().createTreasuryChain(asking(), treasury, rules.confirmations),
          onJudged,
        };
        return made;
      };
      const name = `deposits ${treasury.mode} ${treasury.asset}`;
      // A copy of a ledger has forgotten what was assigned since its backup.
      const job = heldJob(ctx, name, (at) =>
        depositsJob(at, {
          watching,
          monotonicNow: steadyNow,
          random: () => at.randomByte() / 256,
          onTrouble: (trouble) =>
            trouble === null ? logInfo("a treasury is watched again", about()) : logTrouble(trouble, about()),
          onGone: ({ count, amount }) =>
            logError(
              "a reorganisation took deposits out of the chain: correct them, or wait until they come back",
              "chain_deposits_gone",
              { ...about(), deposits: count, amount: amount.toString() },
            ),
        }),
      );
      return { treasury, name, job };
    });
  return {
    jobs: watched.map(
      ({ name, job: { begin } }): Job => ({
        ...{ name, doneBy: "one", everyMs: 2 * SECOND_MS, begin },
        // A node that answers just in time makes a run long, and the service is ready all the same.
        patienceMs: HOUR_MS,
      }),
    ),
    figures: () =>
      ctx.store.read(async (reader) => {
        const states = await treasuryStates(reader);
        return watched.map(({ treasury, job }) => {
          const key = watchKey(treasury);
          const state = states.find(({ watch }) => watchKey(watch) === key);
          return {
            ...{ mode: treasury.mode, asset: treasury.asset },
            ...{ blocksBehind: job.held()?.blocksBehind() ?? null, lateMs: job.held()?.lateMs() ?? 0 },
            stopped: (state?.watch.stopped ?? null) !== null,
            unassigned: state?.unassigned ?? 0,
            gone: state?.gone.count ?? 0,
          };
        });
      }),
  };
}

type About = ReturnType<typeof aboutOf>;
const aboutOf = ({ mode, asset, chainId, address }: Treasury | TreasuryWatch) => ({
  ...{ mode, asset, chain: caip2Of(chainId), treasury: address },
});

function logTrouble(trouble: WatchTrouble, about: About): void {
  if (trouble.outcome !== "stopped") {
    const { outcome, ...more } = trouble;
    logWarning(TROUBLES[outcome], { ...about, ...more });
    return;
  }
  const { why, expected, balance } = trouble;
  logWarning(STOPPED[why], {
    ...about,
    ...(expected !== undefined && { adds_up_to: expected.toString() }),
    ...(balance !== undefined && { balance: balance.toString() }),
  });
}

/** Anybody can send any number of transfers, so that each reason is said once a minute. The list has them all. */
function judgedLog(): Watching["onJudged"] {
  const log = createFaultLog(
    (message, why, about) => logWarning(message, { ...about, why: String(why) }),
    steadyNow,
  );
  return (watch, judged) => {
    if (judged.outcome === "unassigned")
      log(
        "a transfer to a treasury is nobody's deposit; see holdfast deposits list --unassigned",
        judged.why,
        aboutOf(watch),
      );
  };
}
