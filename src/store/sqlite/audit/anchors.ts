import type { Database } from "bun:sqlite";
import { sha256Bytes } from "../../../core/canonical.ts";
import { anchorAddressOf, anchorDataOf } from "../../../core/chain-anchor.ts";
import { logNameOf } from "../../../core/log.ts";
import { chainTransactions, logAnchors } from "../../sql/tables/chain.ts";
import { logCheckpoints } from "../../sql/tables/log.ts";
import { payoutTransactions } from "../../sql/tables/payouts.ts";
import { nameOf } from "./digests.ts";
import { expectSame, guarded, inSnapshot, readRows, rowsOf } from "./rows.ts";
import { BY_ROW, type Did, inSlice, slicesOf } from "./slices.ts";

const ROWS_AT_ONCE = 1_000;

type Anchor = typeof logAnchors.$inferSelect;
type Transaction = typeof chainTransactions.$inferSelect;

/**
 * Checks each anchor against its checkpoint and its transaction. What the transactions' signatures are over is checked where they
 * can be read (`services/chain/audit.ts`). Whether a chain has them, only the chain says.
 */
export function* auditAnchors(database: Database, did: Did): Generator<string> {
  const [instance] = database.query<{ id: string }, []>("SELECT id FROM instances").all();
  const address = anchorAddressOf(logNameOf(instance?.id ?? ""), sha256Bytes);
  for (const { after, last } of slicesOf(database, "log_anchors", BY_ROW, ROWS_AT_ONCE, did))
    yield* inSnapshot(database, () => [
      ...rowsOf(database, logAnchors, `WHERE ${inSlice("rowid")}`, after, last).flatMap(({ raw, read }) => [
        ...guarded(nameOf(database, "log_anchors", raw), () => auditAnchor(database, read(), address)),
      ]),
    ]);
  for (const { after, last } of slicesOf(database, "chain_transactions", BY_ROW, ROWS_AT_ONCE, did))
    yield* inSnapshot(database, () => [
      ...rowsOf(database, chainTransactions, `WHERE ${inSlice("rowid")}`, after, last).flatMap(
        ({ raw, read }) => [
          ...guarded(nameOf(database, "chain_transactions", raw), () => auditTransaction(database, read())),
        ],
      ),
    ]);
}

export const OF_KEY = "WHERE chain_id = ? AND wallet = ? AND nonce = ?";

function* auditAnchor(
  database: Database,
  { chainId, wallet, nonce, checkpoint: number, size, root }: Anchor,
  address: string,
): Generator<string> {
  const what = `anchor ${nonce} of ${wallet} on eip155:${chainId}`;
  const [checkpoint] = readRows(database, logCheckpoints, "WHERE number = ?", number);
  const [transaction] = readRows(database, chainTransactions, OF_KEY, chainId, wallet, nonce);
  if (!checkpoint) yield `${what}: is of checkpoint ${number}, which is not there`;
  else {
    yield* expectSame(`${what}: its size`, size, checkpoint.size);
    yield* expectSame(`${what}: its root`, root, checkpoint.root);
  }
  if (!transaction) yield `${what}: its transaction is not there`;
  else {
    yield* expectSame(`${what}: the address of its transaction`, transaction.to, address);
    const data = checkpoint && anchorDataOf(checkpoint.note);
    if (data !== undefined && transaction.data !== data)
      yield `${what}: the data of its transaction is not the note of checkpoint ${number}`;
  }
}

function* auditTransaction(
  database: Database,
  { chainId, wallet, nonce, state, block, minedHash, signings }: Transaction,
): Generator<string> {
  const what = `transaction ${nonce} of ${wallet} on eip155:${chainId}`;
  const isOf = [logAnchors, payoutTransactions].map(
    (table) => readRows(database, table, OF_KEY, chainId, wallet, nonce).length,
  );
  if (isOf[0] === 0 && isOf[1] === 0) yield `${what}: belongs to no anchor and no payout`;
  if (state === "confirmed" && (block ?? -1) < 0) yield `${what}: is confirmed in no block`;
  if (minedHash !== null && !signings.some(({ hash }) => hash === minedHash))
    yield `${what}: its block has a transaction that it never signed`;
}
