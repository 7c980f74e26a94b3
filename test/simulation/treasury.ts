import { MINUTE_MS } from "../../src/core/time.ts";
import type { Treasury } from "../../src/core/treasury.ts";
import { chainOfMode } from "../../src/core/x402/chains.ts";
import { type ChainPayoutsJob, chainPayoutsJob } from "../../src/jobs/chain-payouts.ts";
import { type DepositsJob, depositsJob } from "../../src/jobs/deposits.ts";
import { SPAN_FIRST } from "../../src/services/chain/watch.ts";
import type { Context } from "../../src/services/context.ts";
import { keepRailStates } from "../../src/services/rails/states.ts";
import { dyingAt, STORE_CALLS, WALLET_CALLS } from "../support/dying.ts";
import { createModelTreasury, type ModelTreasury } from "../support/model-treasury.ts";
import { ALICE, BOB, CONFIRMATIONS, TOKEN } from "../support/paying.ts";
import type { Dies } from "./chain-commands.ts";
import type { PlainMoney } from "./plain-money.ts";
import { type ModelWalletLimits, PlainTreasury } from "./plain-treasury.ts";

/** A treasury of the sandbox on a chain in memory, the jobs that work with it, and the model of it. */
export type SimulatedTreasury = {
  readonly chain: ModelTreasury;
  readonly plain: PlainTreasury;
  readonly limits: ModelWalletLimits;
  /** What the wallet had before the history. */
  readonly opening: bigint;
  /** The block at which the deposits begin. */
  readonly firstBlock: number;
  readonly senders: Readonly<Record<"registered" | "stranger", string>>;
  /** The newest block that is confirmed now. */
  confirmed(): number;
  /** Lets each job begin anew. */
  restart(): void;
  /**
   * Lets a job do what is due.
   *
   * @returns whether its process has died
   */
  run(job: "deposits" | "payouts", dies: Dies): Promise<boolean>;
  /** Whether the next run of payouts begins at the first payee. What has kept the wallet from paying made it stop in the midst. */
  isAtFirst: boolean;
};

/** What people are called in the other histories, and their addresses here. */
export const ADDRESSES: Readonly<Record<string, string>> = { acme: ALICE, "acme labs": BOB };

/** Longer than every pause of a job, and than the time between two runs. */
const WAIT_MS = 10 * MINUTE_MS;
const CALLS = [...WALLET_CALLS, "head", "block", "transfers", "balanceAt"];
/** So many blocks are after the first one that no reorganisation of the histories takes it out. */
const BLOCKS_BEFORE = 8;

const hexOf = (bytes: number): `0x${string}` =>
  `0x${Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString("hex")}`;

export async function createTreasury(
  given: Context,
  money: PlainMoney,
  limits: ModelWalletLimits,
): Promise<SimulatedTreasury> {
  // Every history has a wallet of its own, so that it is another treasury.
  const chain = createModelTreasury(CONFIRMATIONS, { key: hexOf(32) });
  const settings: Treasury = {
    ...{ mode: "sandbox", chainId: chainOfMode("sandbox", 84_532)!, token: TOKEN, asset: "USDC" },
    ...{ address: chain.wallet.address, limits: { payoutMax: limits.payout, dayMax: limits.day } },
  };
  const ctx: Context = { ...given, treasuries: [settings] };
  let time = 1_000_000;
  const timing = { monotonicNow: () => time, random: () => 0, onTrouble: () => {} };

  const jobsOf = (wrap: <Of extends object>(of: Of, names: readonly string[]) => Of) => {
    const within = { ...ctx, store: wrap(ctx.store, STORE_CALLS) };
    const [wallet, watched] = [wrap(chain.wallet, CALLS), wrap(chain.watched, CALLS)];
    const watching = { treasury: settings, chain: watched, span: SPAN_FIRST, onJudged: () => {} };
    const paying = {
      ...{ wallet, tokens: [settings], onTakenOut: () => {} },
      rules: { confirmations: CONFIRMATIONS, feeMax: 1_000n },
    };
    const payouts = { ...timing, paying: () => paying, everyMs: WAIT_MS, onAlarm: () => {} };
    return {
      deposits: depositsJob(within, { ...timing, watching: () => watching, onGone: () => {} }),
      payouts: chainPayoutsJob(within, payouts),
    };
  };
  let jobs: { readonly deposits: DepositsJob; readonly payouts: ChainPayoutsJob };

  await keepRailStates(ctx);
  chain.mine(CONFIRMATIONS);
  const treasury: SimulatedTreasury = {
    ...{ chain, plain: new PlainTreasury(money, limits, [ALICE, BOB]), limits, opening: chain.balance },
    ...{ firstBlock: chain.newestBlock() - CONFIRMATIONS + 1, isAtFirst: true },
    senders: { registered: hexOf(20), stranger: hexOf(20) },
    confirmed: () => chain.newestBlock() - CONFIRMATIONS + 1,
    restart() {
      jobs = jobsOf((of) => of);
      treasury.isAtFirst = true;
    },
    async run(job, dies) {
      time += WAIT_MS;
      if (dies === null) {
        await jobs[job].run();
        return false;
      }
      const dying = dyingAt(dies.at, dies.when);
      jobs = jobsOf(dying.of);
      await jobs[job].run().catch((error: unknown) => {
        if (!dying.died()) throw error;
      });
      treasury.restart();
      return dying.died();
    },
  };
  treasury.restart();
  // The deposits begin here.
  await treasury.run("deposits", null);
  chain.mine(BLOCKS_BEFORE);
  return treasury;
}
