import type { WalletTransaction } from "../../core/chain-transaction.ts";
import { isRefusal } from "../../core/errors.ts";
import { addresseeIn, transferData } from "../../core/evm-address.ts";
import { endedPayout, type Payout, type PayoutEnd } from "../../core/payout.ts";
import {
  comparedWith,
  givenUpVerdict,
  outcomeOf,
  type PaymentOutcome,
  type TransactionReceipt,
  type Verdict,
  verdictOf,
} from "../../core/payout-outcome.ts";
import { endPayout, failPayout } from "../../core/postings.ts";
import { isStopped, type PayoutTransaction, type PayoutWait, type RailState } from "../../core/rail.ts";
import type { EvmTreasury } from "../../platform/evm-treasury.ts";
import type { Put } from "../../store/change.ts";
import { reopen, type Stopped, stopped, UNDER_WAY_MAX, walletKey } from "../chain/wallet.ts";
import type { Context } from "../context.ts";
import { payoutPosting } from "../payout-posting.ts";
import { failureAwaited } from "./release.ts";

/** What became of payouts: each is accounted for when its transaction has ended, and again where a reorganisation has opened that. */

/** Something that a person should hear of. */
export type PayoutAlarm = (what: string, about: Readonly<Record<string, string>>) => void;

const TAKEN_OUT = "a reorganisation took it out of its block; it is sent again";

/** Notes which payouts are on their way again. */
export async function reopenTakenOutPayouts(
  ctx: Context,
  wallet: EvmTreasury,
  onAlarm: PayoutAlarm,
): Promise<void> {
  const reopened = await ctx.store.read(({ rails }) => rails.reopened(walletKey(wallet), UNDER_WAY_MAX));
  for (const of of reopened) {
    const isNew = await ctx.store.execute({
      scope: of,
      needs: { payout: of.payoutId, payoutTransaction: { from: "payout" } },
      decide({ payout, payoutTransaction: before }) {
        if (!payout || !before?.judged) return { answer: false };
        const row = { ...before, judged: false, problem: payout.status === "submitted" ? null : TAKEN_OUT };
        return { answer: true, change: { put: [{ kind: "payoutTransaction", before, row }] } };
      },
    });
    if (isNew === true) onAlarm("a reorganisation took a payout out of its block", { payout: of.payoutId });
  }
}

/** Accounts for the payouts whose transactions have ended. Null where the chain has said all that was asked. */
export async function judgePayouts(
  ctx: Context,
  wallet: EvmTreasury,
  onAlarm: PayoutAlarm,
): Promise<Stopped | null> {
  const waiting = await ctx.store.read(async ({ rails, payouts }) => {
    const toJudge = await rails.toJudge(walletKey(wallet), UNDER_WAY_MAX);
    return Promise.all(
      toJudge.map(async ({ payoutId }) => ({
        found: await rails.transactionOf(payoutId),
        payout: await payouts.get(payoutId),
      })),
    );
  });
  for (const { found, payout } of waiting) {
    if (found === null || payout === null || found.transaction.state === "open") continue;
    const away = await judgeOne(ctx, wallet, { ...found, payout }, onAlarm);
    if (away) return away;
  }
  return null;
}

type Judged = {
  readonly of: PayoutTransaction;
  readonly transaction: WalletTransaction;
  readonly payout: Payout;
};

async function judgeOne(
  ctx: Context,
  wallet: EvmTreasury,
  { of, transaction, payout: { asset, payee } }: Judged,
  onAlarm: PayoutAlarm,
): Promise<Stopped | null> {
  const { minedHash, block, chainId, to } = transaction;
  const receipt = minedHash === null ? null : await wallet.receipt(minedHash);
  if (receipt !== null && "away" in receipt) return stopped(receipt);
  if (minedHash !== null && receipt?.block !== block) {
    // A reorganisation has moved it. One that is after it may be where it was, so that nobody else finds out.
    if (receipt !== null) await reopen(ctx, transaction);
    return null;
  }
  const compared =
    receipt?.succeeded === true
      ? await wallet.missingIn(receipt.block, to, addresseeIn(transaction.data))
      : null;
  if (compared !== null && "away" in compared) return stopped(compared);
  const missing = compared?.missing ?? null;
  const verdict = await ctx.store.execute({
    scope: of,
    needs: {
      payout: of.payoutId,
      payoutTransaction: { from: "payout" },
      payoutChainTransaction: { from: "payoutTransaction" },
      payoutWaits: [{ asset, payee }],
      railStates: [{ mode: of.mode, asset: of.asset }],
    },
    decide({
      payout,
      payoutTransaction: before,
      payoutChainTransaction: now,
      payoutWaits: [wait = null],
      railStates: [railState = null],
      recordedAt,
    }) {
      const isAsSeen =
        payout && before && !before.judged && now?.state === transaction.state && now.minedHash === minedHash;
      if (!isAsSeen) return { answer: null };
      const found =
        receipt === null
          ? givenUpVerdict(payout, now.nonce)
          : verdictOf(payout, outcomeBy(receipt, now, payout));
      const row: PayoutTransaction = { ...before, judged: true, problem: found.problem };
      const puts: readonly Put[] = [
        { kind: "payoutTransaction", before, row },
        ...(found.end === null ? [] : endPuts(payout, found.end, wait, recordedAt)),
        ...(found.stops === null ? [] : stopPuts(railState, found.stops, recordedAt)),
      ];
      return { answer: found, change: { put: puts } };
    },
  });
  if (verdict === null || isRefusal(verdict)) return null;
  report(of, verdict, onAlarm);
  return null;

  function outcomeBy(
    by: TransactionReceipt,
    { data, wallet: from }: WalletTransaction,
    { amount }: Payout,
  ): PaymentOutcome {
    const address = addresseeIn(data);
    if (transferData(address, amount) !== data)
      throw new Error(`the transaction of ${of.payoutId} pays something else`);
    const payment = { chainId, token: to, from: from.toLowerCase(), to: address, amount };
    return comparedWith(missing, amount, outcomeOf(payment, by));
  }
}

const stopPuts = (
  before: RailState | null,
  stops: NonNullable<Verdict["stops"]>,
  recordedAt: number,
): readonly Put[] =>
  before === null || isStopped(before)
    ? []
    : [{ kind: "railState", before, row: { ...before, ...stops, since: recordedAt, seenNonce: null } }];

function report(of: PayoutTransaction, { end, problem }: Verdict, onAlarm: PayoutAlarm): void {
  const about = { payout: of.payoutId, mode: of.mode, asset: of.asset };
  if (end?.status === "failed")
    onAlarm("a payout on a chain failed; its amount is owed again", { ...about, why: end.reason });
  if (problem !== null) onAlarm("a payout on a chain needs a person", { ...about, why: problem });
}

/** Ends a payout with its posting. */
function endPuts(
  payout: Payout,
  end: PayoutEnd,
  wait: PayoutWait | null,
  recordedAt: number,
): readonly Put[] {
  const row = endedPayout(payout, end, recordedAt);
  if (isRefusal(row)) throw new Error(`${row.message}`);
  const legs = end.status === "paid" ? endPayout(payout.amount) : failPayout(payout.amount, end.returned);
  return [
    { kind: "payout", before: payout, row },
    payoutPosting(row, `payout_${end.status}`, legs, recordedAt),
    ...(end.status === "failed" ? failureAwaited(row, wait, recordedAt) : []),
  ];
}
