import type { Refusal } from "../../core/errors.ts";
import type { Treasury } from "../../core/treasury.ts";
import { caip2Of } from "../../core/x402/chains.ts";
import type { Context } from "../context.ts";
import { type Authority, refuseAuthority } from "./authority.ts";

const treasuryResource = ({ mode, asset, chainId, token, address, limits }: Treasury) => ({
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
});

/** The tokens and wallets by which money comes in and goes out on chains, as this process is configured. */
export async function listTreasuries(
  { treasuries }: Context,
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
  return refused ?? { object: "list", data: treasuries.map(treasuryResource), has_more: false };
}
