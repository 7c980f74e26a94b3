import { and, asc, desc, eq, gt, isNotNull, lte, type SQL, sql } from "drizzle-orm";
import type { Tally } from "../../../core/treasury-watch.ts";
import { watchOf } from "../chain-transfer-rows.ts";
import type { Connection, SqlDatabase, SqlValue, Tables } from "../database.ts";
import { lazily } from "../lazily.ts";
import { fieldsOf } from "../rows.ts";
import { chainTransfers, depositSenders, treasuryWatches } from "../tables/chain-transfers.ts";
import type { SqlReader } from "./sql-reader.ts";

type Reads = Pick<SqlReader, "treasuryWatches" | "chainTransfers" | "depositSenders">;

/** Treasuries on chains, their transfers, and who sends deposits. */
export const createChainTransfersReader = ({ tables, raw }: Connection): Reads => ({
  treasuryWatches: watchesIn(tables),
  chainTransfers: { ...transfersIn(tables), ...figuresIn(raw) },
  depositSenders: sendersIn(tables),
});

function watchesIn(tables: Tables): Reads["treasuryWatches"] {
  const rows = () => tables.select(fieldsOf(treasuryWatches)).from(treasuryWatches);
  const { id, chainId, token, address } = treasuryWatches;
  const one = (where: SQL | undefined) => {
    const row = rows().where(where).get();
    return row ? watchOf(row) : null;
  };
  return {
    get: (key) => one(and(eq(chainId, key.chainId), eq(token, key.token), eq(address, key.address))),
    find: (watchId) => one(eq(id, watchId)),
    list: () => rows().orderBy(asc(id)).all().map(watchOf),
  };
}

/** By rowid: in the order of commits. */
const ROW = sql`chain_transfers.rowid`;

function transfersIn(tables: Tables): Omit<Reads["chainTransfers"], keyof ReturnType<typeof figuresIn>> {
  const { id, watchId, hash, ordinal, status, block, depositId } = chainTransfers;
  const rows = () => tables.select(fieldsOf(chainTransfers)).from(chainTransfers);
  const one = (where: SQL | undefined) => rows().where(where).get() ?? null;
  return {
    find: (transferId) => one(eq(id, transferId)),
    ofDeposit: (deposit) => one(eq(depositId, deposit)),
    inBlocks: (watch, after, until, limit) =>
      rows()
        .where(and(eq(watchId, watch), gt(block, after), lte(block, until)))
        .orderBy(asc(block), asc(ROW))
        .limit(limit)
        .all(),
    ofTransaction: (watch, transaction) =>
      rows()
        .where(and(eq(watchId, watch), eq(hash, transaction)))
        .orderBy(asc(ordinal))
        .all(),
    at: (watch, until, offset) =>
      rows()
        .where(and(eq(watchId, watch), lte(block, until)))
        .orderBy(asc(block), asc(ROW))
        .limit(1)
        .offset(offset)
        .get() ?? null,
    found: (watch, until, limit) =>
      rows()
        .where(and(eq(watchId, watch), eq(status, "found"), TO_ASSIGN, lte(block, until)))
        .orderBy(asc(ROW))
        .limit(limit)
        .all(),
    unassigned: (watch, olderThan, limit) =>
      rows()
        .where(
          and(
            eq(watchId, watch),
            eq(status, "unassigned"),
            TO_ASSIGN,
            isNotNull(block),
            olderThan === null
              ? undefined
              : sql`${ROW} < (SELECT rowid FROM chain_transfers WHERE id = ${olderThan})`,
          ),
        )
        .orderBy(desc(ROW))
        .limit(limit)
        .all(),
  };
}

/** SQLite takes the partial index only where a query repeats its condition. */
const TO_ASSIGN = sql`${chainTransfers.depositId} IS NULL AND ${chainTransfers.status} <> 'sent'`;

const COUNTED_MAX = 10_000;

function figuresIn(raw: SqlDatabase) {
  const first = <Row>(text: string) =>
    lazily(() => {
      const statement = raw.prepare<Row, SqlValue[]>(text);
      return (...of: SqlValue[]): Row => statement.get(...of) as Row;
    });
  const sums = first<{ received: bigint; sent: bigint }>(
    `SELECT CAST(coalesce(sum(amount) FILTER (WHERE status <> 'sent'), 0) AS BIGINT) AS received,
       CAST(coalesce(sum(amount) FILTER (WHERE status = 'sent'), 0) AS BIGINT) AS sent
     FROM chain_transfers WHERE watch = ? AND block > ? AND block <= ?`,
  );
  const count = first<{ count: bigint }>(
    "SELECT count(*) AS count FROM chain_transfers WHERE watch = ? AND block <= ?",
  );
  const unassigned = first<{ count: bigint }>(
    `SELECT count(*) AS count FROM (SELECT 1 FROM chain_transfers WHERE watch = ? AND status = 'unassigned' AND deposit IS NULL
       AND status <> 'sent' AND block IS NOT NULL LIMIT ${COUNTED_MAX}) AS unassigned`,
  );
  const tally = (condition: string) => {
    const find = first<{ count: bigint; amount: bigint }>(
      `SELECT count(*) AS count, CAST(coalesce(sum(amount), 0) AS BIGINT) AS amount FROM chain_transfers WHERE watch = ? AND ${condition}`,
    );
    return (watchId: string): Tally => {
      const { count: transfers, amount } = find(watchId);
      return { count: Number(transfers), amount };
    };
  };
  return {
    sums: (watchId: string, after: number, until: number) => sums(watchId, after, until),
    countUntil: (watchId: string, until: number) => Number(count(watchId, until).count),
    unassignedCount: (watchId: string) => Number(unassigned(watchId).count),
    gone: tally("block IS NULL AND status = 'credited'"),
  };
}

function sendersIn(tables: Tables): Reads["depositSenders"] {
  const { mode, address, organisationId } = depositSenders;
  const rows = () => tables.select(fieldsOf(depositSenders)).from(depositSenders);
  return {
    get: (name) =>
      rows()
        .where(and(eq(mode, name.mode), eq(address, name.address)))
        .get() ?? null,
    list: (scope, after, limit) =>
      rows()
        .where(
          and(
            eq(organisationId, scope.organisationId),
            eq(mode, scope.mode),
            after === null ? undefined : gt(address, after),
          ),
        )
        .orderBy(asc(address))
        .limit(limit)
        .all(),
  };
}
