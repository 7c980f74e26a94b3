import { and, asc, desc, eq, lt } from "drizzle-orm";
import type { Deposit } from "../../../core/deposit.ts";
import type { Connection } from "../database.ts";
import { lazily } from "../lazily.ts";
import type { Names } from "../names.ts";
import { depositOf, withoutDigest } from "../rows.ts";
import { accounts, deposits, scopes } from "../tables/ledger.ts";
import type { SqlReader } from "./sql-reader.ts";

type Placed = { readonly position: number; readonly deposit: Deposit };

/** Deposits are found by their account, so those of several assets are read one after the other, and put in order. */
export function createDepositsReader({ tables, raw }: Connection, names: Names): SqlReader["deposits"] {
  const positionOf = lazily(() => {
    const statement = raw.prepare<{ position: bigint }, [string]>(
      "SELECT position FROM deposits WHERE id = ?",
    );
    return (id: string) => Number(statement.get(id)?.position ?? 0n);
  });
  const ofAccount = (account: number, before: number, limit: number): readonly Placed[] =>
    tables
      .select(withoutDigest(deposits))
      .from(deposits)
      .where(and(eq(deposits.account, account), lt(deposits.position, before)))
      .orderBy(desc(deposits.position))
      .limit(limit)
      .all()
      .map((row) => ({ position: row.position, deposit: depositOf(row, names) }));
  return {
    get(id) {
      const row = tables.select(withoutDigest(deposits)).from(deposits).where(eq(deposits.id, id)).get();
      return row ? depositOf(row, names) : null;
    },
    list({ organisationId, mode }, olderThan, limit) {
      const before = olderThan === null ? Number.MAX_SAFE_INTEGER : positionOf(olderThan);
      return tables
        .select({ account: accounts.position })
        .from(scopes)
        .innerJoin(accounts, eq(accounts.scope, scopes.position))
        .where(and(eq(scopes.organisationId, organisationId), eq(scopes.mode, mode)))
        .orderBy(asc(accounts.asset))
        .all()
        .flatMap(({ account }) => ofAccount(account, before, limit))
        .toSorted((one, other) => other.position - one.position)
        .slice(0, limit)
        .map(({ deposit }) => deposit);
    },
  };
}
