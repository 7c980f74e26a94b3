import type { IndexTable } from "../view.ts";
import type { SqlDatabase } from "./database.ts";
import { lazily } from "./lazily.ts";

type Ask<Name extends keyof IndexTable> = (of: IndexTable[Name]["of"]) => IndexTable[Name]["gives"];

/** The look-ups of what wallets have signed: authorizations of payments, and transactions of the instance's own. */
export const walletIndexes = (
  raw: SqlDatabase,
): { readonly [Name in "openAuthorizations" | "newestTransaction"]: Ask<Name> } => ({
  openAuthorizations: openAuthorizationsIn(raw),
  newestTransaction: lazily(() => {
    const statement = raw.prepare<{ key: string }, [number, string]>(
      `SELECT chain_id || ' ' || wallet || ' ' || nonce AS key FROM chain_transactions
       WHERE chain_id = ? AND wallet = ? ORDER BY nonce DESC LIMIT 1`,
    );
    return ([chainId, wallet]) => statement.get(chainId, wallet)?.key ?? null;
  }),
});

/**
 * The sum of a wallet's authorizations for a token that the balance does not show: those that may still be
 * used, and those that were used after the balance was read.
 */
function openAuthorizationsIn(raw: SqlDatabase): Ask<"openAuthorizations"> {
  const sumWhere = (condition: string) =>
    `SELECT CAST(coalesce(sum(quoted_amount), 0) AS BIGINT) AS sum FROM purchases
     WHERE payer = ?1 AND chain_id = ?2 AND contract = ?3 AND payer IS NOT NULL AND ${condition}`;
  return lazily(() => {
    const open = raw.prepare<{ sum: bigint }, [string, number, string]>(
      sumWhere("known IS DISTINCT FROM 'paid' AND known IS DISTINCT FROM 'unpaid'"),
    );
    const paid = raw.prepare<{ sum: bigint }, [string, number, string, number]>(
      sumWhere("known = 'paid' AND answered_at >= ?4"),
    );
    return ([payer, chainId, contract, since]) =>
      (open.get(payer, chainId, contract)?.sum ?? 0n) +
      (paid.get(payer, chainId, contract, since)?.sum ?? 0n);
  });
}
