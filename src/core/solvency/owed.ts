/** What the ledger owes of an asset in one mode: to organisations what is available and held, to payees the rest. None is negative. */
export type Owed = {
  readonly available: bigint;
  readonly held: bigint;
  /** To payees, in no payout yet. */
  readonly payable: bigint;
  /** To payees, in payouts that are under way. */
  readonly submitted: bigint;
};

export const OWED_PARTS = [
  "available",
  "held",
  "payable",
  "submitted",
] as const satisfies readonly (keyof Owed)[];

export const NOTHING_OWED: Owed = { available: 0n, held: 0n, payable: 0n, submitted: 0n };

export const addOwed = (one: Owed, other: Owed): Owed => ({
  available: one.available + other.available,
  held: one.held + other.held,
  payable: one.payable + other.payable,
  submitted: one.submitted + other.submitted,
});

export const subtractOwed = (from: Owed, owed: Owed): Owed => ({
  available: from.available - owed.available,
  held: from.held - owed.held,
  payable: from.payable - owed.payable,
  submitted: from.submitted - owed.submitted,
});

export const sumOwed = ({ available, held, payable, submitted }: Owed): bigint =>
  available + held + payable + submitted;
