import type { Config, Secrets } from "../config.ts";
import type { AnchorPlan } from "../core/anchor-settings.ts";
import { type Refusal, refuseField } from "../core/errors.ts";
import { MINUTE_MS, SECOND_MS } from "../core/time.ts";
import type { PrivateKey } from "../core/wallet-key.ts";
import { caip2Of } from "../core/x402/chains.ts";
import { type AnchorTrouble, chainAnchorsJob } from "../jobs/chain-anchors.ts";
import type { Job } from "../jobs/scheduler.ts";
import { logInfo, logWarning } from "../platform/log.ts";
import { steadyNow } from "../platform/steady-clock.ts";
import type { Sending } from "../services/chain/wallet.ts";
import type { Context, OwnChain } from "../services/context.ts";
import { heldJob } from "./held-job.ts";

/** Anchors of the log on a chain (docs/witnesses, "Anchors on a chain"). */

/** viem takes 20 ms to load, so it is loaded with the first run of the job. By `require`, for the reason in `platform/passkeys.ts`. */
const evmWallet = (): typeof import("../platform/evm-wallet.ts") => require("../platform/evm-wallet.ts");

export const ownChainWith = ({ anchor }: Config): OwnChain => ({
  anchors: anchor !== null,
  decode: async (raw) => evmWallet().decodeTransaction(raw),
});

/** Refused where the log is to be anchored on a chain, and no wallet can pay for it. */
export const refuseWithoutWallet = ({ anchor }: Config, { anchorKey }: Secrets): Refusal | null =>
  anchor !== null && anchorKey === null
    ? refuseField(
        "HOLDFAST_ANCHOR_KEY",
        "must be set where HOLDFAST_ANCHOR is evm, or HOLDFAST_ANCHOR_KEY_FILE: the private key of the wallet that pays the gas",
      )
    : null;

const TROUBLES = {
  away: "the chain of the log's anchors does not answer; it is asked again",
  no_funds: "the wallet of the log's anchors cannot pay the gas: send it some",
  refused: "a node refuses the log's anchor; it is sent again",
  capped: "the log's anchor waits: the chain asks for more than HOLDFAST_ANCHOR_FEE_MAX",
} as const satisfies Record<AnchorTrouble["outcome"], string>;

export type ChainAnchoring = {
  readonly jobs: readonly Job[];
  /** For how long an anchor is late; null where the log is not anchored on a chain. */
  readonly lateMs: () => number | null;
};

/** Anchors the log on the chain that is configured. */
export function chainAnchoring(ctx: Context, { anchor }: Config, { anchorKey }: Secrets): ChainAnchoring {
  if (anchor === null || anchorKey === null) return { jobs: [], lateMs: () => null };
  let made: Sending | null = null;
  const sending = (): Sending => {
    made ??= sendingWith(anchor, anchorKey);
    return made;
  };
  const about = () => ({ chain: caip2Of(anchor.chainId), wallet: sending().wallet.address });
  // A copy of a ledger must not spend the wallet's money before somebody says that it is the one that goes on.
  const { begin, held } = heldJob(ctx, JOB, (at) =>
    chainAnchorsJob(at, {
      sending,
      everyMs: anchor.everyMinutes * MINUTE_MS,
      monotonicNow: steadyNow,
      random: () => at.randomByte() / 256,
      onTrouble: (trouble) =>
        trouble === null
          ? logInfo("the log's anchors on the chain go on", about())
          : logWarning(TROUBLES[trouble.outcome], {
              ...about(),
              ...("why" in trouble && { why: trouble.why }),
            }),
      onGivenUp: () =>
        logWarning(
          "another transaction of the wallet has the nonce of the log's anchor; it is made anew",
          about(),
        ),
    }),
  );
  return {
    jobs: [{ name: JOB, doneBy: "one", everyMs: 2 * SECOND_MS, begin }],
    lateMs: () => held()?.lateMs() ?? 0,
  };
}

const JOB = "chain-anchors";

const sendingWith = ({ chainId, url, confirmations, feeMax }: AnchorPlan, key: PrivateKey): Sending => ({
  wallet: evmWallet().createEvmWallet({ chainId, url, key }, confirmations),
  rules: { confirmations, feeMax },
  onTakenOut: ({ block, nonce }) =>
    logWarning("a reorganisation took the log's anchor out of its block; it is brought in again", {
      ...{ chain: caip2Of(chainId), block, nonce },
    }),
});
