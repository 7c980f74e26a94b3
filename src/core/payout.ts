import { hashJson } from "./canonical.ts";
import { type Refusal, refuse } from "./errors.ts";
import type { PayeeBalance } from "./postings.ts";
import type { Mode } from "./roles.ts";

/** The account of a payee: an organisation owes it in one mode and asset. */
export type PayeeName = { readonly asset: string; readonly payee: string };

/** The account of a payee, and its place in a list. */
export type PayeeAccount = PayeeName & { readonly at: number; readonly balance: PayeeBalance };

/** What is owed to a payee, all of which its next payout pays. */
export type OwedAmount = PayeeName & { readonly amount: bigint };

/** How much payouts are together, of each asset. */
export function totalsOf(
  payouts: readonly Pick<OwedAmount, "asset" | "amount">[],
): readonly { readonly asset: string; readonly amount: bigint }[] {
  const totals = new Map<string, bigint>();
  for (const { asset, amount } of payouts) totals.set(asset, (totals.get(asset) ?? 0n) + amount);
  return [...totals].map(([asset, amount]) => ({ asset, amount }));
}

/** SHA-256 over the payouts of one submission, in their order, with the organisation and the mode. A passkey signs it. */
export const batchDigest = (
  { organisationId, mode }: Pick<Payout, "organisationId" | "mode">,
  payouts: readonly OwedAmount[],
): string =>
  hashJson({
    ...{ organisation_id: organisationId, mode },
    payouts: payouts.map(({ payee, asset, amount }) => ({ payee, asset, amount: amount.toString() })),
  });

/**
 * Where a payout can be. `owed` is what a payee's account has in no payout yet, so it is no row of its own. A failed one stays
 * failed: its amount is owed again, and the next payout is another one.
 */
export const PAYOUT_STATUSES = ["owed", "submitted", "paid", "failed"] as const;
export type PayoutStatus = (typeof PAYOUT_STATUSES)[number];

/** How a payout reaches its payee: people pay by their own means (`book`), or a wallet of the instance sends a token (`evm`). */
export const RAILS = ["book", "evm"] as const;

/** Money on its way out of the ledger to a payee. */
export type Payout = PayeeName & {
  readonly id: string;
  readonly organisationId: string;
  readonly mode: Mode;
  readonly amount: bigint;
  readonly rail: (typeof RAILS)[number];
  readonly status: Exclude<PayoutStatus, "owed">;
  /** 1 when it is submitted, one more with each move. */
  readonly version: number;
  /** What the payment is called elsewhere; null until it is paid. */
  readonly reference: string | null;
  /** Why it failed; null where it has not. */
  readonly reason: string | null;
  readonly createdAt: number;
  /** When it was marked as paid or failed; null before. */
  readonly endedAt: number | null;
};

/** How a payout ends. `returned` is a payment that came back after it was marked as paid. */
export type PayoutEnd =
  | { readonly status: "paid"; readonly reference: string }
  | { readonly status: "failed"; readonly reason: string; readonly returned: boolean };

/**
 * The payout after its end; itself where this end is recorded already, so that nothing is marked twice; or why it cannot end so:
 * `illegal_transition`.
 */
export function endedPayout(payout: Payout, end: PayoutEnd, recordedAt: number): Payout | Refusal {
  if (isSameEnd(payout, end)) return payout;
  const from = end.status === "failed" && end.returned ? "paid" : "submitted";
  if (payout.status !== from) return refuse("illegal_transition", whyNot(payout, end));
  const ended = { ...payout, version: payout.version + 1, endedAt: recordedAt };
  return end.status === "paid"
    ? { ...ended, status: "paid", reference: end.reference }
    : { ...ended, status: "failed", reason: end.reason };
}

const isSameEnd = ({ status, reference, reason }: Payout, end: PayoutEnd): boolean =>
  status === end.status && (end.status === "paid" ? reference === end.reference : reason === end.reason);

function whyNot({ id, status, reference }: Payout, end: PayoutEnd): string {
  if (status === "paid" && end.status === "paid")
    return `The payout ${id} was marked as paid with the reference ${reference}.`;
  if (status === "paid")
    return `The payout ${id} was marked as paid. Where the payment came back, say so (--returned).`;
  return status === "failed"
    ? `The payout ${id} has failed, and its amount is owed again. Submit it anew.`
    : `The payout ${id} is ${status}: it was not paid, so nothing can have come back.`;
}
