import {
  type ChainCall,
  type ChainRules,
  firstFees,
  nextStep,
  standsInBlock,
  type WalletTransaction,
  type WalletView,
} from "../../core/chain-transaction.ts";
import { isRefusal } from "../../core/errors.ts";
import type { Away } from "../../platform/ask-chain.ts";
import type { EvmWallet, NotSent } from "../../platform/evm-wallet.ts";
import type { Put } from "../../store/change.ts";
import type { Context } from "../context.ts";

/**
 * The transactions of the instance's own wallets on chains. Whatever sends one begins it here, so that one place gives out nonces:
 * each signing is on disk before it is sent, and it keeps its nonce until a confirmed block has it. So a crash between any two
 * steps sends nothing twice: what was signed is sent again, and a chain takes a nonce once. The server's jobs alone call this, one
 * for each wallet, under a lease. Where an instance that was stopped goes on without it, it may send again what was signed; what it
 * signs is refused by its nonce, which has one row, or since the row is not as it was seen.
 */
export type Sending = {
  readonly wallet: EvmWallet;
  readonly rules: ChainRules;
  /** Called where a reorganisation took a confirmed transaction out of its block. */
  readonly onTakenOut: (transaction: WalletTransaction) => void;
};

/** What keeps a transaction from the chain: the node, which says why, or that the wallet cannot pay the gas. */
export type Stopped = { readonly outcome: "no_funds" | "refused" | "away"; readonly why: string };

/** What came of a step. */
export type Stepped =
  /** Nothing is under way. */
  | { readonly outcome: "idle" }
  /** It is sent, or in a block that too few others follow so far. */
  | { readonly outcome: "waits" }
  | { readonly outcome: "confirmed"; readonly block: number }
  /** The node says that another transaction of the wallet has its nonce. Whoever began it decides what follows. */
  | { readonly outcome: "given_up" }
  /** The chain asks for higher fees than the operator allows. */
  | { readonly outcome: "capped" }
  | Stopped;

/** How many transactions of a wallet are under way at most, confirmed ones not counted. */
export const UNDER_WAY_MAX = 256;

export const walletKey = ({ chainId, address }: EvmWallet) => ({ chainId, wallet: address });

export const stopped = (answer: NotSent): Stopped =>
  "away" in answer
    ? { outcome: "away", why: answer.away }
    : { outcome: answer.refused === "no_funds" ? "no_funds" : "refused", why: answer.message };

/** What came of the steps of a wallet's transactions, and what its node said before them; null where it was not asked or did not say. */
export type SteppedAll = { readonly stepped: readonly Stepped[]; readonly view: WalletView | null };

/**
 * Brings each transaction that is under way one step further, in the order of nonces, until one is stopped: a chain takes none
 * after it. The view is as it was before.
 */
export async function stepTransactions(ctx: Context, sending: Sending): Promise<SteppedAll> {
  const { wallet } = sending;
  const underWay = await ctx.store.read(({ chainTransactions }) =>
    chainTransactions.open(walletKey(wallet), UNDER_WAY_MAX),
  );
  const [first] = underWay;
  if (first === undefined) return { stepped: [], view: null };
  const view = await wallet.look(underWay);
  if ("away" in view) return { stepped: [stopped(view)], view: null };
  // One that was confirmed before has left the chain again: it is first in the order of nonces.
  if (view.nonce < first.nonce) {
    const away = await reopenTakenOut(ctx, sending);
    if (away) return { stepped: [stopped(away)], view };
  }
  const stepped: Stepped[] = [];
  for (const [at, transaction] of underWay.entries()) {
    const step = await stepOne(ctx, sending, transaction, view, view.mined[at] ?? null);
    stepped.push(step);
    if ("why" in step) break;
  }
  return { stepped, view };
}

async function stepOne(
  ctx: Context,
  { wallet, rules }: Sending,
  open: WalletTransaction,
  view: WalletView,
  mined: WalletView["mined"][number],
): Promise<Stepped> {
  const step = nextStep(open, { ...view, mined }, rules);
  switch (step.do) {
    case "end":
      await change(ctx, open, { state: "confirmed", block: step.block, minedHash: step.hash });
      return { outcome: "confirmed", block: step.block };
    case "give_up":
      await change(ctx, open, { state: "given_up" });
      return { outcome: "given_up" };
    case "wait":
      return { outcome: "waits" };
    case "send":
      return sent(await wallet.send(step.raw), step.isCapped);
    case "replace": {
      const { nonce, to, data, gas, signings } = open;
      const { newestBlock } = view;
      const signing = await wallet.sign({ to, data, nonce, gas, fees: step.fees, newestBlock });
      const isKept = await change(ctx, open, { signings: [...signings, signing] });
      return isKept ? sent(await wallet.send(signing.raw), false) : { outcome: "waits" };
    }
  }
}

const sent = (refused: NotSent | null, isCapped: boolean): Stepped =>
  refused ? stopped(refused) : { outcome: isCapped ? "capped" : "waits" };

/**
 * Opens again the confirmed transactions that are no longer in their blocks, the newest first, until one still is: those before it
 * are too. A block may be taken out however many others follow it.
 */
export async function reopenTakenOut(ctx: Context, { wallet, onTakenOut }: Sending): Promise<Away | null> {
  for (;;) {
    const last = await ctx.store.read(({ chainTransactions }) =>
      chainTransactions.lastConfirmed(walletKey(wallet)),
    );
    if (last === null) return null;
    const view = await wallet.look([last]);
    if ("away" in view) return view;
    if (standsInBlock(last, { ...view, mined: view.mined[0] ?? null })) return null;
    await reopen(ctx, last);
    onTakenOut(last);
  }
}

/** Opens a confirmed transaction again: the next look says in which block it is, if any. */
export const reopen = (ctx: Context, confirmed: WalletTransaction): Promise<boolean> =>
  change(ctx, confirmed, { state: "open", block: null, minedHash: null });

/** A transaction that is signed and not yet kept. */
export async function signFirst(
  { wallet, rules }: Sending,
  call: ChainCall & { readonly nonce: number; readonly gas: bigint },
  { fees, newestBlock }: Pick<WalletView, "fees" | "newestBlock">,
): Promise<Omit<WalletTransaction, "createdAt">> {
  const order = { ...call, fees: firstFees(fees, rules.feeMax), newestBlock };
  const signing = await wallet.sign(order);
  const { to, data, nonce, gas } = call;
  return {
    ...{ ...walletKey(wallet), nonce, to, data, gas, signings: [signing], state: "open" },
    ...{ block: null, minedHash: null },
  };
}

/**
 * Signs the next transaction of a wallet that has none under way, and keeps it together with what it is for. The next step sends it.
 *
 * @param cause gives what it is for, by its nonce
 */
export async function beginTransaction(
  ctx: Context,
  sending: Sending,
  call: ChainCall,
  cause: (nonce: number) => Put,
): Promise<{ readonly outcome: "begun" } | Stopped> {
  const { wallet } = sending;
  const view = await wallet.look([]);
  if ("away" in view) return stopped(view);
  const allowed = await wallet.gasOf(call);
  if (!("gas" in allowed)) return stopped(allowed);
  const { nonce } = view;
  const signed = await signFirst(sending, { ...call, nonce, gas: allowed.gas }, view);
  const isBegun = await ctx.store.execute({
    scope: null,
    needs: { newestTransaction: walletKey(wallet) },
    decide({ newestTransaction: newest, recordedAt }) {
      // A node that is behind gives a nonce that is used.
      const isFree = newest === null || (newest.state !== "open" && newest.nonce < nonce);
      if (!isFree) return { answer: false };
      const row: WalletTransaction = { ...signed, createdAt: recordedAt };
      return {
        answer: true,
        change: { put: [{ kind: "chainTransaction", before: null, row }, cause(nonce)] },
      };
    },
  });
  if (isBegun === true) return { outcome: "begun" };
  const away = await reopenTakenOut(ctx, sending);
  return away
    ? stopped(away)
    : { outcome: "away", why: "the node is behind: it gives a nonce that was used" };
}

type Changed = Partial<Pick<WalletTransaction, "signings" | "state" | "block" | "minedHash">>;

/** Changes a transaction, unless it has changed since it was read. Answers whether it did. */
async function change(ctx: Context, seen: WalletTransaction, changed: Changed): Promise<boolean> {
  const { chainId, wallet, nonce } = seen;
  const answer = await ctx.store.execute({
    scope: null,
    needs: { chainTransaction: { chainId, wallet, nonce } },
    decide({ chainTransaction: before }) {
      const isAsSeen =
        before !== null && before.state === seen.state && before.signings.length === seen.signings.length;
      if (!isAsSeen) return { answer: false };
      return {
        answer: true,
        change: { put: [{ kind: "chainTransaction", before, row: { ...before, ...changed } }] },
      };
    },
  });
  return !isRefusal(answer) && answer;
}
