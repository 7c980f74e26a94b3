import type { Balance } from "../../core/postings.ts";
import { ACCESS, MODES, type Mode, type PersonCaller, refuseAccess } from "../../core/roles.ts";
import type { Context } from "../context.ts";

export type BalanceOfMode = { readonly mode: Mode; readonly asset: string; readonly balance: Balance };

/** What an organisation has in both modes: what its kill switch stops, and what goes on. */
export async function readAllBalances(ctx: Context, caller: PersonCaller) {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const found: BalanceOfMode[] = [];
    for (const mode of [...MODES].reverse()) {
      for (const { asset, balance } of await reader.balances.list({ ...caller, mode })) {
        found.push({ mode, asset, balance });
      }
    }
    return found as readonly BalanceOfMode[];
  });
}

/** What the ledger knows of the instance itself. */
export async function readInstance(ctx: Context, caller: PersonCaller) {
  const refused = refuseAccess(caller, ACCESS.administer);
  if (refused) return refused;
  return ctx.store.read(async ({ instance, log, logAnchors }) => ({
    instance: await instance.get(),
    logSize: await log.size(),
    newestCheckpoint: await log.newestCheckpoint(),
    anchoredSize: await logAnchors.confirmedSize(),
  }));
}
