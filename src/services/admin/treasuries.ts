import type { Refusal } from "../../core/errors.ts";
import type { Treasury } from "../../core/treasury.ts";
import { watchKey } from "../../core/treasury-watch.ts";
import { caip2Of } from "../../core/x402/chains.ts";
import { type TreasuryState, treasuryStates } from "../chain/treasury-states.ts";
import type { Context } from "../context.ts";
import { type Authority, refuseAuthority } from "./authority.ts";

const treasuryResource = (
  { mode, asset, chainId, token, address, limits }: Treasury,
  state: TreasuryState | null,
) => ({
  object: "treasury" as const,
  mode,
  asset,
  /** CAIP-2. */
  chain: caip2Of(chainId),
  token,
  /** Where deposits are sent to, and payouts come from. It also needs the chain's coin, for gas. */
  address,
  payout_max: limits.payoutMax.toString(),
  day_max: limits.dayMax.toString(),
  /** The last block at which its transfers added up to its balance, and that balance; null before the first. */
  block: state?.watch.reconciled.number ?? null,
  balance: state?.watch.balance.toString() ?? null,
  /** Why nothing is credited at the moment; null where all is as it should be. */
  stopped: state?.watch.stopped ?? null,
  /** Transfers that wait for a person, and deposits that are in no block any more. */
  unassigned: state?.unassigned.count ?? 0,
  gone: state?.gone.count ?? 0,
});

/** The tokens and wallets by which money comes in and goes out on chains, as this process is configured. */
export async function listTreasuries(
  { treasuries, store }: Context,
  authority: Authority,
): Promise<
  | {
      readonly object: "list";
      readonly data: readonly ReturnType<typeof treasuryResource>[];
      readonly has_more: false;
    }
  | Refusal
> {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const states = await store.read(treasuryStates);
  const stateOf = (treasury: Treasury) =>
    states.find(({ watch }) => watchKey(watch) === watchKey(treasury)) ?? null;
  return {
    object: "list",
    data: treasuries.map((treasury) => treasuryResource(treasury, stateOf(treasury))),
    has_more: false,
  };
}
