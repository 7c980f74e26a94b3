import type { WalletTransaction } from "../../core/chain-transaction.ts";
import { isRefusal } from "../../core/errors.ts";
import type { PayeeName, Payout } from "../../core/payout.ts";
import { submitPayout as submitLegs } from "../../core/postings.ts";
import {
  isStopped,
  type PayeeCode,
  type PayoutPlan,
  type PayoutTransaction,
  type PayoutWait,
  planPayout,
  type RailState,
  watchKeyOf,
} from "../../core/rail.ts";
import { DAY_MS } from "../../core/time.ts";
import type { Treasury } from "../../core/treasury.ts";
import { keepsPayouts } from "../../core/treasury-watch.ts";
import type { Put } from "../../store/change.ts";
import type { Scope } from "../../store/scope.ts";
import type { Context } from "../context.ts";
import { awaitsAcknowledgement } from "../instance.ts";
import { payoutPosting } from "../payout-posting.ts";
import { nothingAwaited } from "./release.ts";

/** One payee that is owed something on a chain: what is to be done, what it waits for, and its payout with its signed transaction. */

/** A payee of an organisation and mode. */
export type Owed = Scope & PayeeName;

/** By the time that a commit now would have: a clock that is behind takes nothing out of the limits. */
const dayAgo = ({ store, now }: Context): number => Math.max(now(), store.lastRecordedAt()) - DAY_MS;

/**
 * What is to be done about a payee, by what the ledger knows now.
 *
 * @param isLimited whether one before it waits for the limit of 24 hours, of which nothing is left then
 */
export const planOf = (
  ctx: Context,
  owed: Owed,
  payable: bigint,
  { limits, asset }: Treasury,
  isLimited: boolean,
): Promise<PayoutPlan> =>
  ctx.store.read(async ({ rails }) => {
    const wait = await rails.wait(owed, owed);
    const last = await rails.newestPayout(owed, owed);
    const sent = isLimited ? limits.dayMax : await rails.sentAfter(owed, asset, dayAgo(ctx));
    return planPayout(payable, wait, last, { asset, limits }, sent);
  });

/** Keeps what a payee waits for, where it is something else than before. */
export async function keepWait(
  ctx: Context,
  { organisationId, mode, asset, payee }: Owed,
  {
    code,
    detail,
    until = null,
  }: { readonly code: PayeeCode; readonly detail: string | null; readonly until?: number | null },
): Promise<void> {
  await ctx.store.execute({
    scope: { organisationId, mode },
    needs: { payoutWaits: [{ asset, payee }] },
    decide({ payoutWaits: [before = null], recordedAt }) {
      const isKnown = before?.code === code && before.detail === detail && before.until === until;
      if (isKnown) return { answer: null };
      const since = before?.code === code ? before.since : recordedAt;
      const row: PayoutWait = {
        ...{ organisationId, mode, asset, payee, code, detail, until, since },
        released: before?.released ?? null,
      };
      return { answer: null, change: { put: [{ kind: "payoutWait", before, row }] } };
    },
  });
}

/** When a payout of this amount fits into the limit of 24 hours again, epoch milliseconds; null where it never does. */
export async function fitsAt(
  ctx: Context,
  owed: Owed,
  amount: bigint,
  dayMax: bigint,
): Promise<number | null> {
  if (amount > dayMax) return null;
  const after = dayAgo(ctx);
  return ctx.store.read(async ({ rails }) => {
    const sent = await rails.sentAfter(owed, owed.asset, after);
    const at = await rails.sentBy(owed, owed.asset, after, sent + amount - dayMax);
    return at === null ? null : at + DAY_MS;
  });
}

/**
 * Commits a payout: its row, its posting, its signed transaction and their link, all or nothing. It is sent afterwards.
 *
 * @param signed a transaction that pays the payee the amount
 * @returns whether it was committed; else something has changed since it was planned, and nothing is written
 */
export async function commitPayout(
  ctx: Context,
  owed: Owed,
  plan: Extract<PayoutPlan, { readonly do: "submit" }>,
  signed: Omit<WalletTransaction, "createdAt">,
  { limits }: Treasury,
): Promise<boolean> {
  const { organisationId, mode, asset, payee } = owed;
  const { chainId, wallet, nonce, to: token } = signed;
  const id = ctx.newId("payout");
  const answer = await ctx.store.execute({
    scope: { organisationId, mode },
    needs: {
      payeeBalances: [{ asset, payee }],
      newestPayout: { asset, payee },
      payoutWaits: [{ asset, payee }],
      sentInDay: asset,
      railStates: [{ mode, asset }],
      newestTransaction: { chainId, wallet },
      treasuryWatch: watchKeyOf({ chainId, wallet, token }),
    },
    decide({ newestPayout, sentInDay, newestTransaction, ...at }) {
      const [payeeBalance = null, payoutWait = null, railState = null] = [
        at.payeeBalances[0],
        at.payoutWaits[0],
        at.railStates[0],
      ];
      const isSameRail =
        railState?.chainId === chainId && railState.wallet === wallet && railState.token === token;
      const isNextNonce = newestTransaction === null || newestTransaction.nonce < nonce;
      if (!isSameRail || isStopped(railState) || keepsPayouts(at.treasuryWatch)) return { answer: false };
      if (!isNextNonce || awaitsAcknowledgement(at.instance)) return { answer: false };
      const again = planPayout(
        payeeBalance?.payable ?? 0n,
        payoutWait,
        newestPayout,
        { asset, limits },
        sentInDay,
      );
      if (again.do !== "submit" || again.amount !== plan.amount || again.byPerson !== plan.byPerson)
        return { answer: false };
      const { amount, byPerson } = again;
      const payout: Payout = {
        ...{ id, organisationId, mode, asset, payee, amount, rail: "evm", status: "submitted", version: 1 },
        ...{ reference: null, reason: null, createdAt: at.recordedAt, endedAt: null },
      };
      const of: PayoutTransaction = {
        ...{ chainId, wallet, nonce, organisationId, mode, asset, payoutId: id, token, byPerson },
        ...{ judged: false, problem: null, recordedAt: at.recordedAt },
      };
      const put: readonly Put[] = [
        { kind: "chainTransaction", before: null, row: { ...signed, createdAt: at.recordedAt } },
        { kind: "payout", before: null, row: payout },
        { kind: "payoutTransaction", before: null, row: of },
        payoutPosting(payout, "payout_submitted", submitLegs(amount), at.recordedAt),
        ...nothingAwaited(payoutWait, at.recordedAt),
        ...firstNonce(railState, nonce, newestTransaction === null),
      ];
      return { answer: true, change: { put } };
    },
  });
  return !isRefusal(answer) && answer;
}

/** What the wallet sent before the ledger knew it is known from its first transaction on. */
const firstNonce = (before: RailState, nonce: number, isFirst: boolean): readonly Put[] =>
  isFirst && before.acceptedNonce === null
    ? [{ kind: "railState", before, row: { ...before, acceptedNonce: nonce } }]
    : [];
