import type { Database } from "bun:sqlite";
import { referenceOf } from "../../../core/chain-transfer.ts";
import { expectSame, inSnapshot } from "./rows.ts";
import { BY_ROW, type Did, inSlice, type Slice, slicesOf } from "./slices.ts";

const ROWS_AT_ONCE = 5_000;

/** Checks that every credited transfer is its deposit, and that each treasury's sums are those of its transfers. */
export function* auditChainTransfers(database: Database, did: Did): Generator<string> {
  for (const slice of slicesOf(database, "chain_transfers", BY_ROW, ROWS_AT_ONCE, did))
    yield* inSnapshot(database, () => [...auditCredited(database, slice)]);
  yield* inSnapshot(database, () => [...auditSums(database)]);
}

type Credited = {
  readonly id: string;
  readonly hash: string;
  readonly ordinal: bigint;
  readonly amount: bigint;
  readonly chain_id: bigint | null;
  readonly mode: string | null;
  readonly asset: string | null;
  readonly deposit: string;
  /** Null where the deposit is not there. */
  readonly deposit_amount: bigint | null;
  readonly reference: string | null;
  readonly deposit_asset: string | null;
  readonly deposit_mode: string | null;
  readonly times: bigint;
};

function* auditCredited(database: Database, { after, last }: Slice<bigint>): Generator<string> {
  const credited = database.query<Credited, [bigint, bigint]>(
    `SELECT one.id, hash, ordinal, one.amount, chain_id, watches.mode, watches.asset, deposit, deposits.amount AS deposit_amount,
       reference, accounts.asset AS deposit_asset, scopes.mode AS deposit_mode,
       (SELECT count(*) FROM chain_transfers AS other WHERE other.deposit = one.deposit) AS times
     FROM chain_transfers AS one LEFT JOIN treasury_watches AS watches ON watches.id = watch
       LEFT JOIN deposits ON deposits.id = deposit LEFT JOIN accounts ON accounts.position = account
       LEFT JOIN scopes ON scopes.position = scope
     WHERE ${inSlice("one.rowid")} AND deposit IS NOT NULL`,
  );
  for (const row of credited.iterate(after, last)) {
    const what = `transfer ${row.id}`;
    if (row.deposit_amount === null) {
      yield `${what}: its deposit ${row.deposit} is not there`;
      continue;
    }
    const { hash, ordinal } = row;
    const reference = referenceOf(Number(row.chain_id), { hash, ordinal: Number(ordinal) });
    yield* expectSame(`${what}: its deposit's amount`, row.deposit_amount, row.amount);
    yield* expectSame(`${what}: its deposit's reference`, row.reference, reference);
    yield* expectSame(`${what}: its deposit's asset`, row.deposit_asset, row.asset);
    yield* expectSame(`${what}: its deposit's mode`, row.deposit_mode, row.mode);
    if (row.times !== 1n) yield `${what}: its deposit ${row.deposit} is that of ${row.times} transfers`;
  }
}

type Watch = {
  readonly id: string;
  readonly received: bigint;
  readonly sent: bigint;
  readonly balance: bigint;
  /** Of its transfers: up to the last block, and up to the reconciled one. */
  readonly came_in: bigint;
  readonly left: bigint;
  readonly expected: bigint;
};

function* auditSums(database: Database): Generator<string> {
  const came = "FROM chain_transfers WHERE watch = treasury_watches.id";
  const watches = database.query<Watch, []>(
    `SELECT id, received, sent, balance,
       (SELECT coalesce(sum(amount), 0) ${came} AND block <= last_block AND status <> 'sent') AS came_in,
       (SELECT coalesce(sum(amount), 0) ${came} AND block <= last_block AND status = 'sent') AS "left",
       opening + (SELECT coalesce(sum(CASE status WHEN 'sent' THEN -amount ELSE amount END), 0) ${came}
         AND block <= reconciled_block) AS expected
     FROM treasury_watches ORDER BY id`,
  );
  for (const { id, received, sent, balance, came_in, left, expected } of watches.iterate()) {
    yield* expectSame(`treasury ${id}: received`, received, came_in);
    yield* expectSame(`treasury ${id}: sent`, sent, left);
    yield* expectSame(`treasury ${id}: balance`, balance, expected);
  }
}
