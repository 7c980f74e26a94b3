import { and, eq, sql } from "drizzle-orm";
import { transactionKeyIn } from "../../core/chain-transaction.ts";
import type { Tables } from "./database.ts";
import { lazily } from "./lazily.ts";
import { excludedOf, fieldsOf, placeholdersOf } from "./rows.ts";
import { chainTransactions, logAnchors } from "./tables/chain.ts";

/** How the rows of the instance's own wallets are written and found. */

const { placeholder } = sql;

export function chainRows(tables: Tables) {
  const { chainId, wallet, nonce } = chainTransactions;
  return {
    chainTransaction: () =>
      tables
        .insert(chainTransactions)
        .values(placeholdersOf(chainTransactions))
        .onConflictDoUpdate({
          target: [chainId, wallet, nonce],
          set: excludedOf(chainTransactions, "signings", "state", "block", "minedHash"),
        }),
    logAnchor: () => tables.insert(logAnchors).values(placeholdersOf(logAnchors)),
  };
}

export function chainLookUps(tables: Tables) {
  const { chainId, wallet, nonce } = chainTransactions;
  return {
    chainTransaction: lazily(() => {
      const statement = tables
        .select(fieldsOf(chainTransactions))
        .from(chainTransactions)
        .where(
          and(
            eq(chainId, placeholder("chainId")),
            eq(wallet, placeholder("wallet")),
            eq(nonce, placeholder("nonce")),
          ),
        )
        .prepare();
      return (rowKey: string) => statement.get(transactionKeyIn(rowKey)) ?? null;
    }),
  };
}
