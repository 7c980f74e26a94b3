import { amount, arrayOf, form, is, object, oneOf, text, type Wire } from "../core/form.ts";
import type { Balance } from "../core/postings.ts";
import { MODES, type Mode } from "../core/roles.ts";

/** The balances of an organisation in one mode, one for each asset. */
const balanceForm = form("Balance", () =>
  object({
    object: is("balance"),
    mode: oneOf(MODES),
    balances: arrayOf(object({ asset: text, available: amount, held: amount, paid: amount })),
  }),
);

export const balanceResource = (
  mode: Mode,
  balances: readonly { readonly asset: string; readonly balance: Balance }[],
): Wire<typeof balanceForm> => ({
  object: "balance",
  mode,
  balances: balances.map(({ asset, balance }) => ({
    asset,
    available: balance.available.toString(),
    held: balance.held.toString(),
    paid: balance.paid.toString(),
  })),
});
