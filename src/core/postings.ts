import { shareOf } from "./money.ts";

/**
 * Double entry. The accounts of an organisation, a mode and an asset are `available`, `held`, `paid` (out, to payees) and
 * `funding` (the source of deposits). A posting is one movement with a leg for each account; its legs sum to zero.
 * The first three balances are never negative; `funding` is their sum, negated.
 */
export type Legs = {
  readonly available: bigint;
  readonly held: bigint;
  readonly paid: bigint;
  readonly funding: bigint;
};

/** The three balances that a person sees. */
export type Balance = { readonly available: bigint; readonly held: bigint; readonly paid: bigint };

export const NO_BALANCE: Balance = { available: 0n, held: 0n, paid: 0n };

function balanced(legs: Legs): Legs {
  if (legs.available + legs.held + legs.paid + legs.funding !== 0n) throw new Error("unbalanced posting");
  return legs;
}

/** Money comes in. */
export const deposit = (amount: bigint): Legs =>
  balanced({ available: amount, held: 0n, paid: 0n, funding: -amount });

/** A warrant opens: available → held. */
export const hold = (amount: bigint): Legs =>
  balanced({ available: -amount, held: amount, paid: 0n, funding: 0n });

/** A hold ends: `bps` of it is paid, rounded down, and the rest returns to available. 0 is a refund, 10000 a release. */
export function settle(amount: bigint, bps: number): Legs {
  const paid = shareOf(amount, bps);
  return balanced({ available: amount - paid, held: -amount, paid, funding: 0n });
}
