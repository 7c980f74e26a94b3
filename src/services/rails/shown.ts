import type { PayeeName, Payout } from "../../core/payout.ts";
import { transactionRef } from "../../core/payout-outcome.ts";
import { railOf, type Waiting, watchKeyOf, whyOwed, whySubmitted } from "../../core/rail.ts";
import type { OnChain } from "../../resources/payout.ts";
import type { Reader } from "../../store/reader.ts";
import type { Scope } from "../../store/scope.ts";

/** By which rail something goes, and what it waits for, as everybody is shown it. */

type RailReader = Pick<Reader, "rails" | "treasuryWatches">;

/** The rail of what is owed to a payee, and why it is owed. */
export async function owedOn(
  { rails, treasuryWatches }: RailReader,
  scope: Scope,
  { asset, payee }: PayeeName,
): Promise<{ readonly rail: Payout["rail"]; readonly waiting: Waiting | null }> {
  const state = await rails.state({ mode: scope.mode, asset });
  if (state === null) return { rail: "book", waiting: null };
  const [watch, wait] = await Promise.all([
    treasuryWatches.get(watchKeyOf(state)),
    rails.wait(scope, { asset, payee }),
  ]);
  return { rail: railOf(payee, state), waiting: whyOwed(payee, state, watch, wait) };
}

/** What a payout waits for, and the transaction that pays it. */
export async function payoutOn({ rails }: Pick<Reader, "rails">, payout: Payout): Promise<OnChain> {
  const found = payout.rail === "evm" ? await rails.transactionOf(payout.id) : null;
  if (found === null) return { waiting: null, transaction: null };
  const { of, transaction } = found;
  const { minedHash, signings, chainId } = transaction;
  return {
    waiting: whySubmitted(payout, of, await rails.state(payout)),
    transaction: transactionRef(chainId, minedHash ?? signings.at(-1)?.hash ?? ""),
  };
}
