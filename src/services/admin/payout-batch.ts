import { type Refusal, refuse } from "../../core/errors.ts";
import { batchDigest, type OwedAmount, type PayeeAccount } from "../../core/payout.ts";
import { type RailState, railOf } from "../../core/rail.ts";
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
  return batchOf(scope, owed);
}

/** What is owed now to each of the first thousand payees whom people pay by their own means, however many a wallet pays before them. */
export async function readBatchByHand(reader: Reader, scope: Scope): Promise<Batch> {
  const states = new Map<string, RailState | null>();
  const owed: PayeeAccount[] = [];
  for (let after = 0; owed.length <= BATCH_MAX; ) {
    const page = await reader.payees.owed(scope, after, BATCH_MAX);
    for (const account of page) {
      const { asset, payee } = account;
      if (!states.has(asset)) states.set(asset, await reader.rails.state({ mode: scope.mode, asset }));
      if (railOf(payee, states.get(asset) ?? null) === "book") owed.push(account);
    }
    if (page.length < BATCH_MAX) break;
    after = page.at(-1)?.at ?? after;
  }
  return batchOf(scope, owed);
}

function batchOf(scope: Scope, owed: readonly PayeeAccount[]): Batch {
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
