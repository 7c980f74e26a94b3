import type { RailCode } from "../core/rail.ts";
import { MINUTE_MS, SECOND_MS } from "../core/time.ts";
import { reopenTakenOut, type Stepped, stepTransactions } from "../services/chain/wallet.ts";
import type { Context } from "../services/context.ts";
import { type PayingWallet, type Trouble, troubleOf } from "../services/rails/batch.ts";
import { judgePayouts, type PayoutAlarm, reopenTakenOutPayouts } from "../services/rails/judge.ts";
import { beginPass, type Pass } from "../services/rails/pass.ts";
import { setRailCode } from "../services/rails/states.ts";
import { createPauses } from "./pauses.ts";

/** How often payouts that are under way are looked after. */
const STEP_MS = 5 * SECOND_MS;
/** How long payouts are begun in one run: what is under way waits meanwhile, and a node may be slow. */
const BEGIN_MS_MAX = MINUTE_MS;
/** How often it is asked whether the newest confirmed payout is still in its block. */
const RECHECK_MS = 10 * MINUTE_MS;

export type ChainPayoutsOptions = {
  readonly paying: () => PayingWallet;
  /** What is owed is paid out so often. */
  readonly everyMs: number;
  /** A clock that never jumps, in milliseconds. */
  readonly monotonicNow: () => number;
  /** From 0 up to 1, without 1. */
  readonly random: () => number;
  /** Called where the wallet's payouts stop for another reason than before; with null, where they go on. */
  readonly onTrouble: (trouble: Trouble | null) => void;
  readonly onAlarm: PayoutAlarm;
};

export type ChainPayoutsJob = {
  /** Does what is due. It may be called at any time, after a crash at any time too. */
  run(): Promise<void>;
};

/**
 * Pays out what is owed on a chain from one wallet: begins payouts within the limits, looks after their transactions until the
 * chain has confirmed them, and accounts for what became of each.
 */
export function chainPayoutsJob(ctx: Context, options: ChainPayoutsOptions): ChainPayoutsJob {
  const { everyMs, monotonicNow, random, onTrouble, onAlarm } = options;
  const pauses = createPauses(monotonicNow, random);
  // What keeps new payouts from being sent must not delay those that are under way.
  const beginPauses = createPauses(monotonicNow, random);
  let notBegun: Trouble | null = null;
  let recheckAt = 0;
  let passAt = 0;
  let pass: Pass | null = null;
  let known: RailCode | null = null;

  async function step(paying: PayingWallet): Promise<Trouble | null> {
    const { wallet } = paying;
    // What a run before this one has opened again, and did not come to note.
    await reopenTakenOutPayouts(ctx, wallet, onAlarm);
    if (monotonicNow() >= recheckAt) {
      const away = await reopenTakenOut(ctx, paying);
      if (away) return { code: "away", detail: away.away };
      recheckAt = monotonicNow() + RECHECK_MS;
    }
    const { stepped } = await stepTransactions(ctx, paying);
    await reopenTakenOutPayouts(ctx, wallet, onAlarm);
    const away = await judgePayouts(ctx, wallet, onAlarm);
    return troubleIn(stepped) ?? (away && troubleOf(away));
  }

  async function begin(paying: PayingWallet): Promise<Trouble | null> {
    if (!beginPauses.isDue()) return notBegun;
    if (pass === null) {
      if (monotonicNow() < passAt) return notBegun;
      passAt = monotonicNow() + everyMs;
      pass = await beginPass(ctx, paying);
    }
    const until = monotonicNow() + BEGIN_MS_MAX;
    const gone = await pass.goOn(() => monotonicNow() >= until);
    if (gone === "done") pass = null;
    notBegun = typeof gone === "object" ? gone : null;
    if (notBegun === null) beginPauses.answered(0);
    else beginPauses.failed();
    // What was begun is sent, also where the next one could not be.
    const { stepped } = await stepTransactions(ctx, paying);
    return notBegun ?? troubleIn(stepped);
  }

  async function note(paying: PayingWallet, trouble: Trouble | null): Promise<void> {
    const stays = await setRailCode(ctx, paying.tokens, trouble ?? { code: null, detail: null });
    // What waits for the operator has not passed because nothing was begun.
    if (trouble === null && stays && known === "unknown_transactions") return;
    const code = trouble?.code ?? null;
    if (code !== known) onTrouble(trouble);
    known = code;
  }

  return {
    async run() {
      if (!pauses.isDue()) return;
      const paying = options.paying();
      const stuck = await step(paying);
      if (stuck === null) pauses.answered(STEP_MS);
      else pauses.failed();
      await note(paying, stuck ?? (await begin(paying)));
    },
  };
}

const CAPPED: Trouble = { code: "fees", detail: null };

/** What keeps the first of a wallet's transactions, and so all after it, from the chain. */
function troubleIn(stepped: readonly Stepped[]): Trouble | null {
  for (const one of stepped) {
    if ("why" in one) return troubleOf(one);
    if (one.outcome === "capped") return CAPPED;
  }
  return null;
}
