import type { Fees, TransactionKey } from "./chain-transaction.ts";
import { type NoAddress, payeeAddress, type TokenOfWallet } from "./evm-address.ts";
import { displayAmount } from "./money.ts";
import type { PayeeName, Payout } from "./payout.ts";
import type { Mode } from "./roles.ts";
import type { Treasury } from "./treasury.ts";
import { keepsPayouts, type TreasuryWatch, type WatchKey } from "./treasury-watch.ts";
import { caip2Of } from "./x402/chains.ts";

/** How payouts reach payees: people pay by their own means and mark it (`book`), or a wallet sends a token on a chain (`evm`). */

/**
 * What keeps a token's payouts from being sent. `unknown_transactions` and `other_amount` stay until the operator resumes it, and
 * `no_treasury` until the settings name it again; the others pass by themselves.
 */
export const RAIL_CODES = [
  "away",
  "no_gas",
  "fees",
  "refused",
  "unknown_transactions",
  "other_amount",
  "no_treasury",
] as const;
export type RailCode = (typeof RAIL_CODES)[number];

/** Why something is owed, or is on its way, and what was said of it. `until`: when it passes, epoch milliseconds, where that is known. */
export type Waiting<Code extends string = WaitCode> = {
  readonly code: Code;
  readonly detail: string | null;
  readonly until: number | null;
};

/** The token that stands for an asset of a mode, as the server of the ledger last had it, and what keeps it from paying. */
export type RailState = TokenOfWallet & {
  readonly mode: Mode;
  readonly asset: string;
  /** The next nonce of the wallet, as the operator last accepted it or the server first saw it; null before. */
  readonly acceptedNonce: number | null;
  /** The next nonce that the chain showed when it had transactions that the ledger does not know; null where it had none. */
  readonly seenNonce: number | null;
  readonly code: RailCode | null;
  readonly detail: string | null;
  /** Since when it is so, epoch milliseconds; null where nothing keeps it. */
  readonly since: number | null;
};

/** The name of the watch of a token's treasury. */
export const watchKeyOf = ({ chainId, token, wallet }: TokenOfWallet): WatchKey => ({
  chainId,
  token,
  address: wallet,
});

export const railStateKey = ({ mode, asset }: Pick<RailState, "mode" | "asset">): string =>
  `${mode} ${asset}`;

/** What may keep one payee from being paid. */
export const PAYEE_CODES = [
  "above_payout_limit",
  "above_day_limit",
  "failed",
  "token_refuses",
  "no_money",
  "released",
] as const;
export type PayeeCode = (typeof PAYEE_CODES)[number];

/** What the server found when it last looked at a payee that is owed something. Null where nothing keeps it from being paid. */
export type PayoutWait = PayeeName & {
  readonly organisationId: string;
  readonly mode: Mode;
  readonly code: PayeeCode | null;
  readonly detail: string | null;
  readonly until: number | null;
  /** How much a person has released, whatever the limits are; null where nobody did. */
  readonly released: bigint | null;
  /** Since when it is so, epoch milliseconds. */
  readonly since: number;
};

/** Which transaction pays which payout. */
export type PayoutTransaction = TransactionKey &
  Pick<Payout, "organisationId" | "mode" | "asset"> & {
    readonly payoutId: string;
    /** The token's address, in lower case. */
    readonly token: string;
    /** Whether a person released it, so that the limits do not count it. */
    readonly byPerson: boolean;
    /** Whether the end of the transaction is accounted for. A reorganisation may open it again. */
    readonly judged: boolean;
    /** What a person has to know or decide; null where nothing. */
    readonly problem: string | null;
    readonly recordedAt: number;
  };

export type WaitCode =
  | PayeeCode
  | RailCode
  | NoAddress
  | "balance_differs"
  | "next_run"
  | "confirmations"
  | "decision";

/** The rail of what is owed to a payee: `evm` where a token stands for the asset and the payee has an address on its chain. */
export const railOf = (payee: string, state: RailState | null): Payout["rail"] =>
  state !== null && state.code !== "no_treasury" && "address" in payeeAddress(payee, state) ? "evm" : "book";

/**
 * Whether a wallet on a chain holds, or held, real money of an asset: that of all organisations together. So no organisation's people
 * say by themselves that there is more of it: what they add would be paid out of the money of the others.
 */
export const isPooled = (mode: Mode, state: RailState | null): boolean => mode === "live" && state !== null;

/** Whether a payout leaves such a wallet: then no organisation's people say by themselves that it failed or came back. */
export const isOfPool = ({ rail, mode }: Pick<Payout, "rail" | "mode">): boolean =>
  rail === "evm" && mode === "live";

/** How a treasury's watch stands; null where nobody has looked at its chain yet. */
type Watched = Pick<TreasuryWatch, "stopped"> | null;

/** What keeps new payouts of a token from being sent: what its wallet met, or else its watch; null where nothing does. */
export const whatKeeps = (
  { code, detail }: Pick<RailState, "code" | "detail">,
  watch: Watched,
): Pick<Waiting<RailCode | "balance_differs">, "code" | "detail"> | null =>
  code !== null ? { code, detail } : keepsPayouts(watch) ? { code: "balance_differs", detail: null } : null;

/** Why a payee is owed something; null where people pay it by their own means, and no wallet could. */
export function whyOwed(
  payee: string,
  state: RailState | null,
  watch: Watched,
  wait: Pick<PayoutWait, "code" | "detail" | "until"> | null,
): Waiting | null {
  if (state === null) return null;
  const found = payeeAddress(payee, state);
  if ("code" in found)
    return state.code === "no_treasury"
      ? null
      : { code: found.code, detail: caip2Of(state.chainId), until: null };
  if (wait?.code && wait.code !== "released")
    return { code: wait.code, detail: wait.detail, until: wait.until };
  const kept = whatKeeps(state, watch);
  if (kept) return { ...kept, until: null };
  return { code: wait?.code ?? "next_run", detail: null, until: null };
}

/** Why a payout is submitted and not paid; null on the rail `book`, and after its end. */
export function whySubmitted(
  { rail, status }: Pick<Payout, "rail" | "status">,
  of: Pick<PayoutTransaction, "problem" | "judged" | "wallet" | "chainId"> | null,
  state: RailState | null,
): Waiting | null {
  if (rail !== "evm" || of === null) return null;
  if (of.problem !== null) return { code: "decision", detail: of.problem, until: null };
  if (status !== "submitted") return null;
  const isKnown = state !== null && state.wallet === of.wallet && state.chainId === of.chainId;
  if (!isKnown || state.code === "no_treasury")
    return { code: "no_treasury", detail: of.wallet, until: null };
  // What stops new payouts does not stop those that are under way.
  const passes = state.code !== null && !isStopped(state);
  return passes
    ? { code: state.code, detail: state.detail, until: null }
    : { code: "confirmations", detail: null, until: null };
}

/** Whether nothing new is sent until a person says so. */
export const isStopped = ({ code }: Pick<RailState, "code">): boolean =>
  code === "unknown_transactions" || code === "other_amount" || code === "no_treasury";

const SENTENCES: { readonly [Code in WaitCode]: string } = {
  next_run: "the next run sends it",
  released: "it was released, and the next run sends it",
  confirmations: "it waits for confirmations on the chain",
  decision: "a person has to look at it",
  not_an_address: "it is no address of a chain: pay it by your own means",
  other_chain: "it is an address of another chain than the treasury's: pay it by your own means",
  wrong_checksum: "the capitals of its address are wrong: pay it by your own means, or ask the payee",
  not_payable: "it is the zero address, the token or the treasury itself: nothing is sent there",
  above_payout_limit:
    "it is above the limit for one payout: an admin releases it in the console, with a passkey",
  above_day_limit: "it is above the limit of 24 hours",
  failed: "a payout failed: an admin releases it again in the console, with a passkey",
  token_refuses: "the token refuses the transfer",
  no_money: "the treasury has too little of the token",
  away: "the chain does not answer",
  no_gas: "the treasury cannot pay the gas: send it some of the chain's coin",
  fees: "the chain asks for more than HOLDFAST_TREASURY_FEE_MAX",
  refused: "a node refuses a transaction",
  unknown_transactions:
    "the chain has transactions of this wallet that the ledger does not know: compare before you go on",
  other_amount:
    "the chain did something else than was asked: payouts of the token have stopped until holdfast treasuries resume",
  balance_differs:
    "the treasury's transfers do not add up to its balance: payouts of it wait until they do; the token may take a fee, or the node hides logs",
  no_treasury: "its treasury is not in the settings any more",
};

/** A sentence for people, without its full stop. */
export const waitSentence = ({ code, detail }: Pick<Waiting, "code" | "detail">): string =>
  detail === null ? SENTENCES[code] : `${SENTENCES[code]} (${detail})`;

/** What is to be done about a payee that something is owed to. */
export type PayoutPlan =
  | { readonly do: "nothing" }
  | { readonly do: "submit"; readonly amount: bigint; readonly byPerson: boolean }
  | { readonly do: "wait"; readonly code: PayeeCode; readonly detail: string | null };

/**
 * Decides about a payee. What a person has released is paid, and no more than that; else all that is owed, within the limits. After
 * a payout that failed a person decides, also where a later one was under way already.
 *
 * @param wait what the payee waited for until now
 * @param sent how much of the asset the organisation was paid out in the last 24 hours without a person
 */
export function planPayout(
  owed: bigint,
  wait: Pick<PayoutWait, "code" | "detail" | "released"> | null,
  last: Pick<Payout, "status" | "reason"> | null,
  { asset, limits: { payoutMax, dayMax } }: Pick<Treasury, "asset" | "limits">,
  sent: bigint,
): PayoutPlan {
  if (owed === 0n) return { do: "nothing" };
  const released = wait?.released ?? null;
  if (released !== null) return { do: "submit", amount: owed < released ? owed : released, byPerson: true };
  if (last?.status === "failed") return { do: "wait", code: "failed", detail: last.reason };
  if (wait?.code === "failed") return { do: "wait", code: "failed", detail: wait.detail };
  if (owed > payoutMax)
    return { do: "wait", code: "above_payout_limit", detail: displayAmount(payoutMax, asset) };
  if (sent + owed > dayMax)
    return { do: "wait", code: "above_day_limit", detail: displayAmount(dayMax, asset) };
  return { do: "submit", amount: owed, byPerson: false };
}

/** What a wallet knows of its own nonces. */
export type KnownNonces = {
  /** The highest nonce that the ledger has a transaction of; null where it has none. */
  readonly newest: number | null;
  readonly accepted: number | null;
  /** Whether the ledger was restored at any time: it may have forgotten transactions. */
  readonly wasRestored: boolean;
};

/** The nonce of the next transaction, or why there is none. `behind`: the node does not show what the ledger knows. */
export type NextNonce =
  | { readonly nonce: number }
  | { readonly stop: { readonly from: number; readonly until: number } }
  | { readonly stop: "behind" };

/**
 * @param next how many transactions of the wallet are in blocks
 * @param firstOpen the lowest nonce that is under way; null where none is
 */
export function nextNonce(
  { newest, accepted, wasRestored }: KnownNonces,
  next: number,
  firstOpen: number | null,
): NextNonce {
  if (newest === null && accepted === null && !wasRestored) return { nonce: next };
  const known = Math.max(newest === null ? 0 : newest + 1, accepted ?? 0);
  if (next > known) return { stop: { from: known, until: next } };
  return next >= (firstOpen ?? known) ? { nonce: known } : { stop: "behind" };
}

/** Whether being in one of the next blocks costs more than may be paid. `max` has room for six full blocks. */
export const isTooDear = ({ max, priority }: Fees, feeMax: bigint): boolean =>
  (max - priority) / 2n + priority > feeMax;
