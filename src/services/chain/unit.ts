import { DECIMALS } from "../../core/money.ts";
import type { Away } from "../../platform/ask-chain.ts";
import type { Decimals } from "../../platform/treasury-chain.ts";

/** How many decimals a token has, or says nothing of, and how many its asset has in the ledger. */
export type OtherUnit = Decimals & { readonly expected: number };

/**
 * Whether a token counts in another unit than its asset does in the ledger; null where it does not, and where the ledger knows no unit
 * of the asset.
 *
 * @param ask asks the token for its decimals
 */
export async function otherUnit(
  asset: string,
  ask: () => Promise<Decimals | Away>,
): Promise<OtherUnit | Away | null> {
  const expected = DECIMALS.get(asset);
  if (expected === undefined) return null;
  const said = await ask();
  if ("away" in said) return said;
  return said.decimals === expected ? null : { ...said, expected };
}
