import {
  type ChainCall,
  type ChainRules,
  firstFees,
  nextStep,
  standsInBlock,
  type WalletTransaction,
} from "../../core/chain-transaction.ts";
import { isRefusal } from "../../core/errors.ts";
import type { Away } from "../../platform/ask-chain.ts";
import type { EvmWallet, NotSent } from "../../platform/evm-wallet.ts";
import type { Put } from "../../store/change.ts";
import type { Context } from "../context.ts";

/**
 * The transactions of the instance's own wallet on a chain. Whatever sends one begins it here, so that one place gives out nonces:
 * a wallet has one transaction under way, each signing is on disk before it is sent, and it keeps its nonce until a confirmed
 * block has it. So a crash between any two steps sends nothing twice: what was signed is sent again, and a chain takes a nonce once.
 * The server's job alone calls this, and a folder has one server.
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
  /** Another transaction of the wallet has its nonce. What it was for has to be begun anew. */
  | { readonly outcome: "given_up" }
  /** The chain asks for higher fees than the operator allows. */
  | { readonly outcome: "capped" }
  | Stopped;

const keyOf = ({ chainId, address }: EvmWallet) => ({ chainId, wallet: address });

const stopped = (answer: NotSent): Stopped =>
  "away" in answer
    ? { outcome: "away", why: answer.away }
    : { outcome: answer.refused === "no_funds" ? "no_funds" : "refused", why: answer.message };

/** Brings the transaction that is under way one step further. */
export async function stepTransaction(ctx: Context, sending: Sending): Promise<Stepped> {
  const { wallet, rules } = sending;
  const open = await ctx.store.read(({ chainTransactions }) => chainTransactions.firstOpen(keyOf(wallet)));
  if (open === null) return { outcome: "idle" };
  const view = await wallet.look(open);
  if ("away" in view) return stopped(view);
  // One that was confirmed before has left the chain again: it is first in the order of nonces.
  if (view.nonce < open.nonce) {
    const away = await reopenTakenOut(ctx, sending);
    if (away) return stopped(away);
  }
  const step = nextStep(open, view, rules);
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
      chainTransactions.lastConfirmed(keyOf(wallet)),
    );
    if (last === null) return null;
    const view = await wallet.look(last);
    if ("away" in view) return view;
    if (standsInBlock(last, view)) return null;
    await change(ctx, last, { state: "open", block: null, minedHash: null });
    onTakenOut(last);
  }
}

/**
 * Signs the next transaction, and keeps it together with what it is for. The next step sends it.
 *
 * @param cause gives what it is for, by its nonce
 */
export async function beginTransaction(
  ctx: Context,
  sending: Sending,
  call: ChainCall,
  cause: (nonce: number) => Put,
): Promise<{ readonly outcome: "begun" } | Stopped> {
  const { wallet, rules } = sending;
  const view = await wallet.look(null);
  if ("away" in view) return stopped(view);
  const allowed = await wallet.gasOf(call);
  if (!("gas" in allowed)) return stopped(allowed);
  const { gas } = allowed;
  const { nonce, newestBlock } = view;
  const fees = firstFees(view.fees, rules.feeMax);
  const signing = await wallet.sign({ ...call, nonce, gas, fees, newestBlock });
  const key = { ...keyOf(wallet), nonce };
  const isBegun = await ctx.store.execute({
    scope: null,
    needs: { newestTransaction: keyOf(wallet) },
    decide({ newestTransaction: newest, recordedAt }) {
      // A node that is behind gives a nonce that is used.
      const isFree = newest === null || (newest.state !== "open" && newest.nonce < nonce);
      if (!isFree) return { answer: false };
      const row: WalletTransaction = {
        ...{ ...key, to: call.to, data: call.data, gas, signings: [signing], state: "open" },
        ...{ block: null, minedHash: null, createdAt: recordedAt },
      };
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
