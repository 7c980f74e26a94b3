import type { Config, Secrets } from "../config.ts";
import type { RailCode } from "../core/rail.ts";
import { MODES } from "../core/roles.ts";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../core/time.ts";
import type { Treasury } from "../core/treasury.ts";
import { caip2Of } from "../core/x402/chains.ts";
import { chainPayoutsJob } from "../jobs/chain-payouts.ts";
import type { Job, SharedJob } from "../jobs/scheduler.ts";
import { logInfo, logWarning } from "../platform/log.ts";
import { steadyNow } from "../platform/steady-clock.ts";
import type { Context } from "../services/context.ts";
import type { PayingWallet } from "../services/rails/batch.ts";
import { onceAcknowledged } from "./once-acknowledged.ts";
import { treasuryKeyOf } from "./treasuries.ts";

/** Payouts on chains (docs/money, "On a chain"). */

/** viem takes 20 ms to load, so it is loaded with the first run of the job. By `require`, for the reason in `platform/passkeys.ts`. */
const evmTreasury = (): typeof import("../platform/evm-treasury.ts") =>
  require("../platform/evm-treasury.ts");

const TROUBLES = {
  away: "the chain of a treasury does not answer; it is asked again",
  no_gas: "a treasury cannot pay the gas of payouts: send it some of the chain's coin",
  fees: "payouts wait: the chain asks for more than HOLDFAST_TREASURY_FEE_MAX",
  refused: "a node refuses a payout's transaction; it is sent again",
  unknown_transactions:
    "payouts have stopped: the chain has transactions of the treasury that the ledger does not know; compare, then run `holdfast treasuries resume`",
  other_amount:
    "payouts of a token have stopped: the chain did something else than was asked; see `holdfast payouts list --status submitted`",
  no_treasury: "payouts of a token have stopped: it is not in the settings any more",
} as const satisfies Record<RailCode, string>;

/** Jobs that pay out what is owed on chains, one of each mode, so that the sandbox delays nothing live. */
export function payoutJobs(ctx: Context, config: Config, secrets: Secrets): readonly Job[] {
  return MODES.toReversed().flatMap((mode) => {
    const tokens = ctx.treasuries.filter((treasury) => treasury.mode === mode);
    if (tokens.length === 0) return [];
    const chains = [...new Set(tokens.map(({ chainId }) => chainId))];
    const begin: SharedJob["begin"] = (at) => {
      const jobs = chains.map((chainId) =>
        jobOf(
          at,
          config,
          secrets,
          tokens.filter((token) => token.chainId === chainId),
        ),
      );
      // A copy of a ledger must not pay what was paid before somebody says that it is the one that goes on.
      return onceAcknowledged(() => Promise.all(jobs.map((job) => job.run())));
    };
    // A node that answers just in time makes a run long, and the service is ready all the same.
    const patienceMs = HOUR_MS;
    // The limits of 24 hours go by the time of the records.
    const job = { name: `payouts-${mode}`, everyMs: 2 * SECOND_MS, patienceMs, needsTheClock: true };
    return [{ ...job, doneBy: "one", begin }];
  });
}

function jobOf(ctx: Context, { treasury, evmRpc }: Config, secrets: Secrets, tokens: readonly Treasury[]) {
  let made: PayingWallet | null = null;
  const [first] = tokens;
  const paying = (): PayingWallet => {
    const key = first && treasuryKeyOf(secrets, first.mode);
    const url = first && evmRpc.get(first.chainId);
    if (!key || !url) throw new Error("a treasury has neither a key nor an endpoint");
    const { confirmations } = treasury.rules;
    made ??= {
      wallet: evmTreasury().createEvmTreasury({ chainId: first.chainId, url, key }, confirmations),
      rules: treasury.rules,
      tokens,
      onTakenOut: ({ block, nonce }) =>
        logWarning("a reorganisation took a payout out of its block; it is sent again", {
          ...{ ...about(), block, nonce },
        }),
    };
    return made;
  };
  const about = () => ({ chain: caip2Of(first?.chainId ?? 0), wallet: paying().wallet.address });
  return chainPayoutsJob(ctx, {
    paying,
    everyMs: treasury.payoutMinutes * MINUTE_MS,
    monotonicNow: steadyNow,
    random: () => ctx.randomByte() / 256,
    onTrouble: (trouble) =>
      trouble === null
        ? logInfo("payouts on the chain go on", about())
        : logWarning(TROUBLES[trouble.code], {
            ...about(),
            ...(trouble.detail !== null && { why: trouble.detail }),
          }),
    onAlarm: (what, named) => logWarning(what, { ...about(), ...named }),
  });
}
