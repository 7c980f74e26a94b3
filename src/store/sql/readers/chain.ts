import { and, asc, desc, eq, type SQL, sql } from "drizzle-orm";
import type { ChainPlace } from "../../../core/chain-anchor.ts";
import type { WalletOfChain } from "../../../core/chain-transaction.ts";
import type { Connection, SqlDatabase } from "../database.ts";
import { lazily } from "../lazily.ts";
import { fieldsOf } from "../rows.ts";
import { chainTransactions } from "../tables/chain.ts";
import type { SqlReader } from "./sql-reader.ts";

/** Anchors with their transactions. */
const ANCHORS = "log_anchors JOIN chain_transactions USING (chain_id, wallet, nonce)";

export const createChainReader = ({
  tables,
  raw,
}: Connection): Pick<SqlReader, "chainTransactions" | "logAnchors"> => {
  const { chainId, wallet, nonce, state } = chainTransactions;
  const row = fieldsOf(chainTransactions);
  const isOf = (of: WalletOfChain) => and(eq(chainId, of.chainId), eq(wallet, of.wallet));
  const newestOf = (of: WalletOfChain, only?: SQL) =>
    tables
      .select(row)
      .from(chainTransactions)
      .where(and(isOf(of), only))
      .orderBy(desc(nonce))
      .limit(1)
      .get() ?? null;
  return {
    chainTransactions: {
      open: (of, limit) =>
        tables
          .select(row)
          .from(chainTransactions)
          .where(and(isOf(of), eq(state, "open")))
          .orderBy(asc(nonce))
          .limit(limit)
          .all(),
      newest: (of) => newestOf(of),
      lastConfirmed: (of) => newestOf(of, eq(state, "confirmed")),
      after: (last, limit) =>
        tables
          .select(row)
          .from(chainTransactions)
          .where(
            last === null
              ? undefined
              : sql`(${chainId}, ${wallet}, ${nonce}) > (${last.chainId}, ${last.wallet}, ${last.nonce})`,
          )
          .orderBy(asc(chainId), asc(wallet), asc(nonce))
          .limit(limit)
          .all(),
    },
    logAnchors: anchorsIn(raw),
  };
};

function anchorsIn(raw: SqlDatabase): SqlReader["logAnchors"] {
  const first = lazily(() => {
    const statement = raw.prepare<Record<"size" | "chain" | "block", bigint>, [number]>(
      `SELECT size, chain_id AS chain, block FROM ${ANCHORS}
       WHERE size >= ? AND state = 'confirmed' ORDER BY size, chain_id, nonce LIMIT 1`,
    );
    return (size: number) => statement.get(size);
  });
  const sizeOn = lazily(() => {
    const statement = raw.prepare<{ size: bigint }, [number]>(
      `SELECT coalesce(max(size), 0) AS size FROM ${ANCHORS}
       WHERE chain_id = ? AND state = 'confirmed'`,
    );
    return (chain: number) => statement.get(chain);
  });
  const confirmed = lazily(() => {
    const statement = raw.prepare<{ size: bigint }, []>(
      `SELECT coalesce(max(size), 0) AS size FROM ${ANCHORS} WHERE state = 'confirmed'`,
    );
    return () => statement.get();
  });
  return {
    firstConfirmed(from) {
      const row = first(from);
      if (row === null) return null;
      const place: ChainPlace = { chainId: Number(row.chain), block: Number(row.block) };
      return { size: Number(row.size), ...place };
    },
    sizeOn: (chainId) => Number(sizeOn(chainId)?.size ?? 0n),
    confirmedSize: () => Number(confirmed()?.size ?? 0n),
  };
}
