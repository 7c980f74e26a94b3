import { type Refusal, refuse } from "../../core/errors.ts";
import { batchDigest, type OwedAmount } from "../../core/payout.ts";
import type { Reader } from "../../store/reader.ts";
import type { Scope } from "../../store/scope.ts";
import { firstOf } from "../page-of-list.ts";

/** How many payouts one submission begins. */
const BATCH_MAX = 1_000;

/** Whose payouts are asked for: without a payee, of all payees that are owed something, of any asset. */
export type Asked = {
  readonly payee?: string;
  /** What is owed to that payee; without it, `USDC`. */
  readonly asset?: string;
};

/** The payouts that one submission would begin. */
export type Batch = {
  readonly payouts: readonly OwedAmount[];
  readonly digest: string;
  /** Whether more payees are owed something. */
  readonly hasMore: boolean;
};

/** What is owed now to that payee, or to each of the first thousand, in the order in which each was first paid. */
export async function readBatch(
  reader: Reader,
  scope: Scope,
  { payee, asset = "USDC" }: Asked,
): Promise<Batch> {
  const owed =
    payee === undefined
      ? await reader.payees.owed(scope, 0, BATCH_MAX + 1)
      : await reader.payees.owedTo(scope, { payee, asset });
  const { rows, more } = firstOf(owed, BATCH_MAX, ({ at }) => String(at));
  const payouts = rows.map(({ payee: name, asset: of, balance }) => ({
    ...{ payee: name, asset: of, amount: balance.payable },
  }));
  return { payouts, digest: batchDigest(scope, payouts), hasMore: more.has_more };
}

/** The refusal where something else is owed than what a person has seen. */
export const refuseOtherBatch = (): Refusal =>
  refuse(
    "version_conflict",
    "What is owed has changed since it was shown: nothing was submitted. See what is owed now, and submit that.",
  );
