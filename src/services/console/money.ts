import type { Deposit } from "../../core/deposit.ts";
import type { Refusal } from "../../core/errors.ts";
import type { Balance } from "../../core/postings.ts";
import { ACCESS, type Caller, refuseAccess } from "../../core/roles.ts";
import { countedIn } from "../admin/balances.ts";
import type { Context } from "../context.ts";

/** What an organisation has of each asset, in both modes, and a page of what came in. */

type AssetBalance = { readonly asset: string; readonly balance: Balance };

export type MoneyPage = {
  readonly balances: readonly AssetBalance[];
  /** Of the mode that the caller is not in. */
  readonly otherBalances: readonly AssetBalance[];
  /** Newest first. `counted` is what a deposit counts for, as it was corrected. */
  readonly deposits: readonly (Deposit & { readonly counted: bigint })[];
  /** The deposit after which the next page begins; null at the end. */
  readonly next: string | null;
};

const PAGE_SIZE = 25;

/** @param olderThan the id of the deposit after which the page begins; null for the newest */
export async function readMoney(
  ctx: Context,
  caller: Caller,
  olderThan: string | null,
): Promise<MoneyPage | Refusal> {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  const { organisationId, mode } = caller;
  return ctx.store.read(async (reader) => {
    const found = await reader.deposits.list(caller, olderThan, PAGE_SIZE + 1);
    const deposits = found.slice(0, PAGE_SIZE);
    return {
      balances: await reader.balances.list(caller),
      otherBalances: await reader.balances.list({
        organisationId,
        mode: mode === "live" ? "sandbox" : "live",
      }),
      deposits: await Promise.all(
        deposits.map(async (deposit) => ({ ...deposit, counted: await countedIn(reader, deposit) })),
      ),
      next: found.length > PAGE_SIZE ? (deposits.at(-1)?.id ?? null) : null,
    };
  });
}
