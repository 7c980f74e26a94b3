import { and, eq, sql } from "drizzle-orm";
import { transactionKeyIn } from "../../core/chain-transaction.ts";
import type { PayoutTransaction, PayoutWait, RailState } from "../../core/rail.ts";
import type { IndexTable } from "../view.ts";
import type { SqlDatabase, Tables } from "./database.ts";
import { mapped, scopedKey } from "./find-by-key.ts";
import { lazily } from "./lazily.ts";
import type { Names } from "./names.ts";
import type { Positions } from "./positions.ts";
import type { PreparedWrite } from "./prepared-write.ts";
import {
  accountOf,
  digestOf,
  excludedOf,
  fieldsOf,
  given,
  ofAccount,
  placeholdersOf,
  type RowOf,
  withoutDigest,
} from "./rows.ts";
import { CHAIN_RAIL_OF_MODE } from "./tables/ledger.ts";
import { payouts, payoutTransactions, payoutWaits, railStates } from "./tables/payouts.ts";

/** Payouts on chains: which transaction pays each, what payees wait for, and what keeps a token from paying. */

const { placeholder } = sql;

/** @throws where its payout does not exist */
export function payoutTransactionOf(
  { id, row: { payout: _, account, rail: __, ...row } }: StoredTransaction,
  names: Names,
): PayoutTransaction {
  return { ...row, ...ofAccount(BigInt(account), names), payoutId: id };
}
type StoredTransaction = { readonly id: string; readonly row: RowOf<typeof payoutTransactions> };

/** A transaction of a payout with the payout's id. */
export const selectPayoutTransactions = (tables: Tables) =>
  tables
    .select({ id: payouts.id, row: withoutDigest(payoutTransactions) })
    .from(payoutTransactions)
    .innerJoin(payouts, eq(payouts.position, payoutTransactions.payout));

const transactionRowOf = ({ payoutId, ...of }: PayoutTransaction, positions: Positions) => ({
  ...of,
  account: accountOf(of, positions),
  payout: positions.of("payout", payoutId),
  rail: CHAIN_RAIL_OF_MODE[of.mode],
});

export function railMovesOf(tables: Tables) {
  const { chainId, wallet, nonce } = payoutTransactions;
  return {
    insertPayoutTransaction: () =>
      tables.insert(payoutTransactions).values(placeholdersOf(payoutTransactions)),
    judgePayoutTransaction: () =>
      tables
        .update(payoutTransactions)
        .set({ ...given("judged", "problem"), ...digestOf(payoutTransactions) })
        .where(
          and(
            eq(chainId, placeholder("chainId")),
            eq(wallet, placeholder("wallet")),
            eq(nonce, placeholder("nonce")),
          ),
        ),
    payoutWait: () =>
      tables
        .insert(payoutWaits)
        .values(placeholdersOf(payoutWaits))
        .onConflictDoUpdate({
          target: payoutWaits.payee,
          set: excludedOf(payoutWaits, "code", "detail", "until", "released", "since"),
        }),
  };
}

/** Writes which transaction pays a payout, and what payees wait for. */
export const railWrites = (
  moves: Readonly<Record<keyof ReturnType<typeof railMovesOf>, PreparedWrite>>,
  positions: Positions,
) => ({
  writePayoutTransaction(before: PayoutTransaction | null, of: PayoutTransaction): void {
    const row = transactionRowOf(of, positions);
    if (before === null) moves.insertPayoutTransaction(row);
    else moves.judgePayoutTransaction(row);
  },
  writePayoutWait({ payee: name, ...wait }: PayoutWait): void {
    const payee = positions.payee(accountOf(wait, positions), name);
    if (payee === null) throw new Error("nothing was paid to the payee that waits");
    moves.payoutWait({ ...wait, payee });
  },
});

export const railRows = (tables: Tables) => ({
  railState: () =>
    tables
      .insert(railStates)
      .values(placeholdersOf(railStates))
      .onConflictDoUpdate({
        target: [railStates.mode, railStates.asset],
        set: excludedOf(
          railStates,
          "chainId",
          "wallet",
          "token",
          "acceptedNonce",
          "seenNonce",
          "code",
          "detail",
          "since",
        ),
      }),
});

export function railLookUps(tables: Tables, positions: Positions, names: Names) {
  return {
    payoutTransaction: mapped(
      lazily(() => {
        const { chainId, wallet, nonce } = payoutTransactions;
        const statement = selectPayoutTransactions(tables)
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
      (row) => payoutTransactionOf(row, names),
    ),
    payoutWait: lazily(() => {
      const { code, detail, until, released, since, payee: position } = payoutWaits;
      const statement = tables
        .select({ code, detail, until, released, since })
        .from(payoutWaits)
        .where(eq(position, placeholder("payee")))
        .prepare();
      return (rowKey: string): PayoutWait | null => {
        const { organisationId, mode, rest } = scopedKey(rowKey);
        const [asset, payee] = [rest.slice(0, rest.indexOf(" ")), rest.slice(rest.indexOf(" ") + 1)];
        const scope = positions.scope(organisationId, mode);
        const account = scope === null ? null : positions.account(scope, asset);
        const at = account === null ? null : positions.payee(account, payee);
        const row = at === null ? undefined : statement.get({ payee: at });
        return row === undefined ? null : { organisationId, mode, asset, payee, ...row };
      };
    }),
    railState: lazily(() => {
      const statement = tables
        .select(fieldsOf(railStates))
        .from(railStates)
        .where(and(eq(railStates.mode, placeholder("mode")), eq(railStates.asset, placeholder("asset"))))
        .prepare();
      return (rowKey: string): RailState | null => {
        const [mode, asset] = rowKey.split(" ");
        return statement.get({ mode, asset }) ?? null;
      };
    }),
  };
}

type Ask<Name extends keyof IndexTable> = (of: IndexTable[Name]["of"]) => IndexTable[Name]["gives"];

/** The account of an asset in a scope. */
const ACCOUNT_SQL = `(SELECT accounts.position FROM accounts JOIN scopes ON scopes.position = scope
   WHERE organisation_id = ?1 AND mode = ?2 AND asset = ?3)`;

/** By the status too, since the index is by it. */
const NEWEST_PAYOUT_SQL = `SELECT id AS key FROM payouts WHERE position = (
   SELECT max(newest) FROM (${["submitted", "paid", "failed"]
     .map(
       (status) =>
         `SELECT max(position) AS newest FROM payouts WHERE payee = (SELECT position FROM payees WHERE account = ${ACCOUNT_SQL} AND payee = ?4) AND status = '${status}'`,
     )
     .join(" UNION ALL ")}) AS of_status)`;

export const SENT_SQL = `FROM payout_transactions JOIN payouts ON payouts.position = payout
   WHERE payout_transactions.account = ${ACCOUNT_SQL} AND by_person = 0 AND recorded_at > ?4 AND status <> 'failed'`;

export const railIndexes = (
  raw: SqlDatabase,
): { readonly [Name in "newestPayout" | "transactionOfPayout" | "sentSince"]: Ask<Name> } => ({
  newestPayout: lazily(() => {
    const statement = raw.prepare<{ key: string }, [string, string, string, string]>(NEWEST_PAYOUT_SQL);
    return (of) => statement.get(...of)?.key ?? null;
  }),
  transactionOfPayout: lazily(() => {
    const statement = raw.prepare<{ key: string }, [string]>(
      `SELECT chain_id || ' ' || wallet || ' ' || nonce AS key FROM payout_transactions
       WHERE payout = (SELECT position FROM payouts WHERE id = ?)`,
    );
    return ([id]) => statement.get(id)?.key ?? null;
  }),
  sentSince: lazily(() => {
    const statement = raw.prepare<{ sum: bigint }, [string, string, string, number]>(
      `SELECT CAST(coalesce(sum(amount), 0) AS BIGINT) AS sum ${SENT_SQL}`,
    );
    return (of) => statement.get(...of)?.sum ?? 0n;
  }),
});
