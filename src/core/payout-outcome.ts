import type { Payout, PayoutEnd } from "./payout.ts";
import type { RailCode } from "./rail.ts";
import { caip2Of } from "./x402/chains.ts";

/** What became of a payout's transaction, by the receipt of a confirmed block. */

/** One transfer of a token, as a receipt's log says. Addresses are in lower case. */
export type TokenTransfer = {
  readonly token: string;
  readonly from: string;
  readonly to: string;
  readonly amount: bigint;
};

export type TransactionReceipt = {
  readonly hash: string;
  readonly block: number;
  /** False where it was reverted. */
  readonly succeeded: boolean;
  readonly transfers: readonly TokenTransfer[];
};

/** What was to be paid. Addresses are in lower case. */
export type Payment = {
  readonly chainId: number;
  readonly token: string;
  readonly from: string;
  readonly to: string;
  readonly amount: bigint;
};

export type PaymentOutcome =
  | { readonly outcome: "paid"; readonly reference: string }
  | { readonly outcome: "failed"; readonly reason: string }
  /** The token moved something else, such as less a fee. A person decides what that is. */
  | { readonly outcome: "other"; readonly what: string };

/** How a transaction of a chain is named: `eip155:84532:0x…`. */
export const transactionRef = (chainId: number, hash: string): string => `${caip2Of(chainId)}:${hash}`;

/** Decides by the token's own transfers: those from the wallet, and those to the payee. */
export function outcomeOf(
  { chainId, token, from, to, amount }: Payment,
  { hash, succeeded, transfers }: TransactionReceipt,
): PaymentOutcome {
  const reference = transactionRef(chainId, hash);
  if (!succeeded) return { outcome: "failed", reason: `the token reverted the transfer: ${reference}` };
  const moved = transfers.filter(
    (one) => one.token === token && one.amount > 0n && (one.from === from || one.to === to),
  );
  if (moved.length === 0) return { outcome: "failed", reason: `the token moved nothing: ${reference}` };
  const [only] = moved;
  const isExact = moved.length === 1 && only?.from === from && only.to === to && only.amount === amount;
  if (isExact) return { outcome: "paid", reference };
  const arrived = moved.reduce(
    (sum, one) => (one.to === to && one.from === from ? sum + one.amount : sum),
    0n,
  );
  return { outcome: "other", what: `${arrived} of ${amount} arrived: ${reference}` };
}

/**
 * The outcome, compared with what the payee's balance says: a token may take a fee of which its event says nothing.
 *
 * @param missing how much less the payee has got in the block than the events there say; null where nobody knows
 */
export const comparedWith = (
  missing: bigint | null,
  amount: bigint,
  outcome: PaymentOutcome,
): PaymentOutcome =>
  outcome.outcome !== "paid" || missing === null || missing === 0n
    ? outcome
    : {
        outcome: "other",
        what: `${amount - missing} of ${amount} arrived by the payee's balance, and all of it by the token's event: ${outcome.reference}`,
      };

/** What follows from the end of a transaction. */
export type Verdict = {
  /** How its payout ends; null where it stays as it is. */
  readonly end: PayoutEnd | null;
  /** What a person has to know or decide. */
  readonly problem: string | null;
  /** Why nothing more is sent of the token until the operator resumes it. */
  readonly stops: { readonly code: RailCode; readonly detail: string } | null;
};

const NOTHING: Verdict = { end: null, problem: null, stops: null };

/** What follows for a payout. It was accounted for before where a reorganisation has opened its transaction again. */
export function verdictOf(
  { id, status, reference }: Pick<Payout, "id" | "status" | "reference">,
  outcome: PaymentOutcome,
): Verdict {
  const stopped = (problem: string): Verdict => ({
    end: null,
    problem,
    stops: { code: "other_amount", detail: `${id}: ${problem}` },
  });
  switch (outcome.outcome) {
    case "other":
      return stopped(outcome.what);
    case "paid":
      if (status === "submitted")
        return { ...NOTHING, end: { status: "paid", reference: outcome.reference } };
      if (status === "failed")
        return stopped(`the chain has paid it, though it was marked as failed: ${outcome.reference}`);
      return reference === outcome.reference
        ? NOTHING
        : { ...NOTHING, problem: `the chain has it as ${outcome.reference}` };
    case "failed":
      return { ...NOTHING, end: failedEnd(status, outcome.reason) };
  }
}

const failedEnd = (status: Payout["status"], reason: string): PayoutEnd | null =>
  status === "failed" ? null : { status: "failed", reason, returned: status === "paid" };

/**
 * What follows where the nonce is used, and the node has no receipt of the payout's own transactions. That another transaction has
 * the nonce is likely and not certain: a node may lag behind itself, or have lost its index, and the ledger may have forgotten a
 * transaction of its own. To pay again would then pay twice, so that a person looks.
 */
export function givenUpVerdict({ id, status }: Pick<Payout, "id" | "status">, nonce: number): Verdict {
  const why = `the node says that another transaction of the wallet has its nonce ${nonce}`;
  const stops = { code: "unknown_transactions", detail: `${id}: ${why}` } as const;
  const problem = `${why}: look whether the payee has the money, then mark it as paid or as failed`;
  return { end: null, problem: status === "failed" ? null : problem, stops };
}
