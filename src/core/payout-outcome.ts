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
