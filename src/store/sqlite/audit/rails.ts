import type { Database } from "bun:sqlite";
import { payeeAddress, transferData } from "../../../core/evm-address.ts";
import { isTestNetwork } from "../../../core/x402/chains.ts";
import { chainTransactions } from "../../sql/tables/chain.ts";
import { CHAIN_RAIL_OF_MODE } from "../../sql/tables/ledger.ts";
import { payoutTransactions } from "../../sql/tables/payouts.ts";
import { OF_KEY } from "./anchors.ts";
import { nameOf } from "./digests.ts";
import { expectSame, guarded, inSnapshot, readRows, rowsOf } from "./rows.ts";
import { BY_ROW, type Did, inSlice, slicesOf } from "./slices.ts";

const ROWS_AT_ONCE = 1_000;

/**
 * Checks that each transaction of a payout pays exactly it: its token, its payee, its amount, on a chain of its mode; and that each
 * payout on a chain has one. What was signed is compared with the transaction's row where it can be read (`services/chain/audit.ts`).
 */
export function* auditRails(database: Database, did: Did): Generator<string> {
  for (const { after, last } of slicesOf(database, "payout_transactions", BY_ROW, ROWS_AT_ONCE, did))
    yield* inSnapshot(database, () => [
      ...rowsOf(database, payoutTransactions, `WHERE ${inSlice("rowid")}`, after, last).flatMap(
        ({ raw, read }) => [
          ...guarded(nameOf(database, "payout_transactions", raw), () => auditTransaction(database, read())),
        ],
      ),
    ]);
  const without = database.query<{ id: string }, []>(
    `SELECT id FROM payouts WHERE rail IN ('${Object.values(CHAIN_RAIL_OF_MODE).join("', '")}')
       AND NOT EXISTS (SELECT 1 FROM payout_transactions WHERE payout = payouts.position)`,
  );
  for (const { id } of without.iterate()) yield `payout ${id}: is on a chain, and has no transaction`;
}

type PaidPayout = {
  readonly id: string;
  readonly account: bigint;
  readonly amount: bigint;
  readonly rail: string;
  readonly payee: string | null;
  readonly mode: keyof typeof CHAIN_RAIL_OF_MODE | null;
};

const PAYOUT_SQL = `SELECT payouts.id, payouts.account, amount, rail, payees.payee, mode
  FROM payouts LEFT JOIN payees ON payees.position = payouts.payee
    LEFT JOIN accounts ON accounts.position = payouts.account LEFT JOIN scopes ON scopes.position = scope
  WHERE payouts.position = ?`;

function* auditTransaction(
  database: Database,
  { chainId, wallet, nonce, payout: at, account, rail, token }: typeof payoutTransactions.$inferSelect,
): Generator<string> {
  const payout = database.query<PaidPayout, [number]>(PAYOUT_SQL).get(at);
  const [transaction] = readRows(database, chainTransactions, OF_KEY, chainId, wallet, nonce);
  if (!payout)
    return yield `transaction ${nonce} of ${wallet} on eip155:${chainId}: pays a payout that is not there`;
  const what = `payout ${payout.id}`;
  yield* expectSame(`${what}: the account of its transaction`, BigInt(account), payout.account);
  yield* expectSame(`${what}: the rail of its transaction`, rail, payout.rail);
  yield* expectSame(`${what}: its rail`, payout.rail, payout.mode && CHAIN_RAIL_OF_MODE[payout.mode]);
  if (isTestNetwork(chainId) !== (payout.mode === "sandbox"))
    yield `${what}: is ${payout.mode}, and its transaction is on eip155:${chainId}`;
  if (!transaction) return yield `${what}: its transaction is not there`;
  yield* expectSame(`${what}: the token that its transaction calls`, transaction.to, token);
  const found = payeeAddress(payout.payee ?? "", { chainId, token, wallet });
  const data = "address" in found ? transferData(found.address, payout.amount) : null;
  if (transaction.data !== data)
    yield `${what}: its transaction does not pay ${payout.amount} to ${JSON.stringify(payout.payee)}`;
}
