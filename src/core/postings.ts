import { shareOf } from "./money.ts";

/**
 * Double entry. The accounts of an organisation, a mode and an asset are `available`, `held`, `paid` (out, to payees) and
 * `funding` (the source of deposits). A posting is one movement with a leg for each account; these four sum to zero.
 * The first three balances are never negative; `funding` is their sum, negated.
 *
 * `paid` never falls. It is in three parts: `payable` is owed to payees, `submitted` is in payouts under way, and the rest is paid
 * out. Each payee has an account of these parts.
 */
export type Legs = {
  readonly available: bigint;
  readonly held: bigint;
  readonly paid: bigint;
  readonly funding: bigint;
  readonly payable: bigint;
  readonly submitted: bigint;
};

/** The row whose id is the cause of each kind of posting. Each kind of a cause is posted once. */
export const CAUSE_OF = {
  deposit: "deposit",
  correction: "correction",
  hold: "warrant",
  settlement: "warrant",
  payout_submitted: "payout",
  payout_paid: "payout",
  payout_failed: "payout",
} as const;
export type PostingKind = keyof typeof CAUSE_OF;
/** The kinds of postings in the ledger. */
export const POSTING_KINDS = Object.keys(CAUSE_OF) as readonly PostingKind[];

/** The three balances that a person sees. */
export type Balance = { readonly available: bigint; readonly held: bigint; readonly paid: bigint };

export const NO_BALANCE: Balance = { available: 0n, held: 0n, paid: 0n };

/** What was paid to a payee: what is owed to it, what is in payouts under way, and what is paid out. None is negative. */
export type PayeeBalance = {
  readonly payable: bigint;
  readonly submitted: bigint;
  readonly paidOut: bigint;
};

export const NOTHING_PAID: PayeeBalance = { payable: 0n, submitted: 0n, paidOut: 0n };

/** How a posting moves the account of its payee. */
export const payeeLegsOf = ({ paid, payable, submitted }: Legs): PayeeBalance => ({
  payable,
  submitted,
  paidOut: paid - payable - submitted,
});

/** The balances of an account that nothing was posted to. */
export const NO_LEGS: Legs = { available: 0n, held: 0n, paid: 0n, funding: 0n, payable: 0n, submitted: 0n };

function balanced(moved: Partial<Legs>): Legs {
  const legs = { ...NO_LEGS, ...moved };
  if (legs.available + legs.held + legs.paid + legs.funding !== 0n) throw new Error("unbalanced posting");
  return legs;
}

/** The balances after a posting. */
export const addLegs = (before: Legs, legs: Legs): Legs => ({
  available: before.available + legs.available,
  held: before.held + legs.held,
  paid: before.paid + legs.paid,
  funding: before.funding + legs.funding,
  payable: before.payable + legs.payable,
  submitted: before.submitted + legs.submitted,
});

/** Money comes in. */
export const deposit = (amount: bigint): Legs => balanced({ available: amount, funding: -amount });

/** What a deposit brought is corrected: upwards, or downwards by a negative amount. */
export const correct = (difference: bigint): Legs =>
  balanced({ available: difference, funding: -difference });

/** A warrant opens: available → held. */
export const hold = (amount: bigint): Legs => balanced({ available: -amount, held: amount });

/** Who pays the payee of a warrant: the ledger, by a later payout, or a wallet that has paid already (x402 `exact`). */
export type PaidBy = "ledger" | "wallet";

/**
 * A hold ends: `bps` of it is paid, rounded down, and the rest returns to available. 0 is a refund, 10000 a release. What the
 * ledger pays is owed to the payee from then on.
 */
export function settle(amount: bigint, bps: number, paidBy: PaidBy = "ledger"): Legs {
  const paid = shareOf(amount, bps);
  return balanced({
    available: amount - paid,
    held: -amount,
    paid,
    payable: paidBy === "ledger" ? paid : 0n,
  });
}

/** A payout begins: payable → submitted. */
export const submitPayout = (amount: bigint): Legs => balanced({ payable: -amount, submitted: amount });

/** A payout has reached its payee: submitted → paid out. */
export const endPayout = (amount: bigint): Legs => balanced({ submitted: -amount });

/** A payout has failed, or came back after it was paid: its amount is owed again. */
export const failPayout = (amount: bigint, wasPaid: boolean): Legs =>
  balanced({ payable: amount, submitted: wasPaid ? 0n : -amount });
