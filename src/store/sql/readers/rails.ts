import { and, asc, eq, sql } from "drizzle-orm";
import type { WalletOfChain } from "../../../core/chain-transaction.ts";
import { railStateKey } from "../../../core/rail.ts";
import type { Mode } from "../../../core/roles.ts";
import type { RailFigure } from "../../rails-reader.ts";
import { payeeRowKey } from "../../rows.ts";
import type { Scope } from "../../scope.ts";
import { chainLookUps } from "../chain-rows.ts";
import type { Connection } from "../database.ts";
import { lazily } from "../lazily.ts";
import type { Names } from "../names.ts";
import { payoutLookUps } from "../payout-rows.ts";
import { createPositions } from "../positions.ts";
import {
  payoutTransactionOf,
  railIndexes,
  railLookUps,
  SENT_SQL,
  selectPayoutTransactions,
} from "../rail-rows.ts";
import { fieldsOf } from "../rows.ts";
import { chainTransactions } from "../tables/chain.ts";
import { payoutTransactions, railStates } from "../tables/payouts.ts";
import type { SqlReader } from "./sql-reader.ts";

/** Payouts on chains, by the look-ups of commands where these do. */
export function createRailsReader(connection: Connection, names: Names): SqlReader["rails"] {
  const { tables, raw } = connection;
  const positions = createPositions(raw);
  const found = {
    ...railLookUps(tables, positions, names),
    ...payoutLookUps(tables, positions, names),
    ...chainLookUps(tables),
  };
  const indexes = railIndexes(raw);
  const { chainId, wallet, nonce, judged } = payoutTransactions;
  const isOf = (of: WalletOfChain) => and(eq(chainId, of.chainId), eq(wallet, of.wallet));
  const payeeKey = ({ organisationId, mode }: Scope, asset: string, payee: string) =>
    payeeRowKey(organisationId, mode, asset, payee);
  return {
    states: () =>
      tables
        .select(fieldsOf(railStates))
        .from(railStates)
        .orderBy(asc(railStates.mode), asc(railStates.asset))
        .all(),
    state: (of) => found.railState(railStateKey(of)),
    wait: (scope, { asset, payee }) => found.payoutWait(payeeKey(scope, asset, payee)),
    newestPayout({ organisationId, mode }, { asset, payee }) {
      const id = indexes.newestPayout([organisationId, mode, asset, payee]);
      return id === null ? null : found.payout(id);
    },
    transactionOf(payoutId) {
      const key = indexes.transactionOfPayout([payoutId]);
      const of = key === null ? null : found.payoutTransaction(key);
      const transaction = key === null ? null : found.chainTransaction(key);
      return of && transaction && { of, transaction };
    },
    toJudge: (of, limit) =>
      selectPayoutTransactions(tables)
        .where(and(isOf(of), sql`${judged} = 0`))
        .orderBy(asc(nonce))
        .limit(limit)
        .all()
        .map((row) => payoutTransactionOf(row, names)),
    reopened: (of, limit) =>
      selectPayoutTransactions(tables)
        .innerJoin(
          chainTransactions,
          and(
            eq(chainTransactions.chainId, chainId),
            eq(chainTransactions.wallet, wallet),
            eq(chainTransactions.nonce, nonce),
          ),
        )
        .where(and(isOf(of), sql`${chainTransactions.state} = 'open'`, sql`${judged} = 1`))
        .orderBy(asc(nonce))
        .limit(limit)
        .all()
        .map((row) => payoutTransactionOf(row, names)),
    ...sumsIn(connection, indexes),
  };
}

const COUNTED_MAX = 10_000;

type Sums = "owing" | "sentAfter" | "sentBy" | "figures";

function sumsIn(
  { raw }: Connection,
  { sentSince }: ReturnType<typeof railIndexes>,
): Pick<SqlReader["rails"], Sums> {
  const owing = lazily(() => {
    const statement = raw.prepare<{ id: string }, [string, string]>(
      `SELECT organisation_id AS id FROM scopes JOIN accounts ON accounts.scope = scopes.position
       WHERE mode = ? AND asset = ? AND payable > 0 ORDER BY scopes.position`,
    );
    return (mode: Mode, asset: string) => statement.all(mode, asset).map(({ id }) => id);
  });
  const sentBy = lazily(() => {
    const statement = raw.prepare<{ at: bigint | null }, [string, string, string, number, bigint]>(
      `SELECT min(recorded_at) AS at FROM (
         SELECT recorded_at, sum(amount) OVER (ORDER BY recorded_at, payout) AS so_far ${SENT_SQL}
       ) AS sent WHERE so_far >= ?5`,
    );
    return (...of: [string, string, string, number, bigint]) => statement.get(...of)?.at ?? null;
  });
  const figures = lazily(() => {
    const tokens = raw.prepare<Pick<RailFigure, "mode" | "asset" | "code"> & { readonly count: bigint }, []>(
      `SELECT mode, asset, code, (SELECT count(*) FROM payout_transactions AS one WHERE one.chain_id = rail_states.chain_id
         AND one.wallet = rail_states.wallet AND one.token = rail_states.token AND judged = 0) AS count
       FROM rail_states ORDER BY mode, asset`,
    );
    const waits = raw.prepare<
      { readonly mode: Mode; readonly asset: string; readonly code: string; readonly count: bigint },
      []
    >(
      `SELECT mode, asset, code, count(*) AS count
       FROM (SELECT payee, code FROM payout_waits WHERE code IS NOT NULL LIMIT ${COUNTED_MAX}) AS wait
         JOIN payees ON payees.position = wait.payee JOIN accounts ON accounts.position = account
         JOIN scopes ON scopes.position = scope
       WHERE payees.payable > 0 GROUP BY mode, asset, code ORDER BY mode, asset, code`,
    );
    return (): RailFigure[] => {
      const counted = waits.all();
      return tokens.all().map(({ count, ...token }) => ({
        ...{ ...token, underWay: Number(count) },
        waiting: Object.fromEntries(
          counted
            .filter(({ mode, asset }) => mode === token.mode && asset === token.asset)
            .map(({ code, count: payees }) => [code, Number(payees)]),
        ),
      }));
    };
  });
  return {
    owing,
    sentAfter: ({ organisationId, mode }, asset, after) => sentSince([organisationId, mode, asset, after]),
    sentBy({ organisationId, mode }, asset, after, amount) {
      const at = sentBy(organisationId, mode, asset, after, amount);
      return at === null ? null : Number(at);
    },
    figures: () => figures(),
  };
}
