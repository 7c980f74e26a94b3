import type { Behind, Wrong } from "./table-guards.ts";

/** Raw SQL that the tables of treasuries refuse; a part of `guard-cases.ts`. */

const WATCH =
  "treasury_watches (id, mode, asset, chain_id, token, address, first_block, first_hash, opening, last_block, last_hash, received, sent, reconciled_block, reconciled_hash, balance, created_at)";
const TRANSFER =
  "chain_transfers (watch, hash, ordinal, id, status, counterparty, amount, block, block_hash, created_at)";

const watch = (columns: Record<string, string> = {}): string => {
  const {
    id = "'twa_new'",
    mode = "'live'",
    chain = "1",
    address = "'0xnew'",
    received = "0",
    stopped,
  } = columns;
  return `INSERT INTO ${stopped === undefined ? WATCH : WATCH.replace(")", ", stopped)")} VALUES (${id}, ${mode}, 'USDC', ${chain}, '0xt', ${address},
    1, '0x1', 10, 1, '0x1', ${received}, 0, 1, '0x1', 10, 0${stopped === undefined ? "" : `, ${stopped}`})`;
};
const transfer = (columns: Record<string, string> = {}): string => {
  const { ordinal = "9", status = "'found'", amount = "5", block = "2", hash = "'0x2'" } = columns;
  return `INSERT INTO ${TRANSFER} VALUES ('twa_one', '0xh', ${ordinal}, 'trf_' || ${ordinal}, ${status}, '0xc', ${amount}, ${block}, ${hash}, 0)`;
};
const deposit = (id: string, reference: string, account: string, amount = "5"): string =>
  `INSERT INTO deposits SELECT NULL, '${id}', ${account}, ${amount}, '${reference}', 0, NULL`;
const credit = (id: string, to: string): string =>
  `UPDATE chain_transfers SET status = 'credited', deposit = '${to}' WHERE id = '${id}'`;
const onTransfer = (id: string, set: string) => () => `UPDATE chain_transfers SET ${set} WHERE id = '${id}'`;
const onWatch = (set: string) => () => `UPDATE treasury_watches SET ${set} WHERE id = 'twa_one'`;

/**
 * A treasury with transfers of each status, and deposits of several references, without postings.
 *
 * @param accountIn the position of an account of the mode, as SQL
 */
export function* transferRows(accountIn: (mode: string) => string): Iterable<string> {
  yield watch({ id: "'twa_one'", address: "'0xa'" });
  yield "UPDATE treasury_watches SET last_block = 5, reconciled_block = 3, balance = 15, received = 20";
  // 0 is found; 1 is credited; 2 waits for a person; 3 is not reconciled yet; 4 was sent.
  for (const ordinal of ["0", "1", "2"]) yield transfer({ ordinal });
  yield transfer({ ordinal: "3", block: "5" });
  yield transfer({ ordinal: "4", status: "'sent'" });
  const live = "(SELECT account FROM deposits WHERE reference = 'second')";
  for (const ordinal of ["0", "1", "3"]) yield deposit(`dep_of_${ordinal}`, `eip155:1:0xh/${ordinal}`, live);
  yield deposit("dep_sandbox", "eip155:1:0xh/0", accountIn("sandbox"));
  yield `INSERT INTO accounts (scope, asset, available, held, paid, funding, posted) SELECT scope, 'EURC', 0, 0, 0, 0, 0 FROM accounts WHERE position = ${live}`;
  yield deposit("dep_eurc", "eip155:1:0xh/0", "(SELECT position FROM accounts WHERE asset = 'EURC')");
  yield deposit("dep_other_amount", "eip155:1:0xh/2", live, "6");
  yield credit("trf_1", "dep_of_1");
  yield "UPDATE chain_transfers SET status = 'unassigned' WHERE id = 'trf_2'";
  yield "INSERT INTO deposit_senders SELECT 'live', '0x' || hex(zeroblob(20)), id, NULL, 0, NULL FROM organisations LIMIT 1";
}

const IS_ITS_DEPOSIT = /a transfer is a deposit of its amount, reference, mode and asset/;
const ONCE = /a transfer is credited once/;
const FIXED = /what was transferred is fixed/;

export const WRONG_TRANSFERS: readonly Wrong[] = [
  ["a transfer of nothing", () => transfer({ amount: "0" }), /chain_transfers_amount/],
  ["a transfer of half a unit", () => transfer({ amount: "0.5" }), /chain_transfers_amount/, null],
  ["a transfer below the first", () => transfer({ ordinal: "-1" }), /chain_transfers_ordinal/],
  ["a block without a hash", () => transfer({ hash: "NULL" }), /chain_transfers_block/],
  [
    "a transfer twice",
    () => transfer({ ordinal: "0" }).replace("'trf_' || 0", "'trf_new'"),
    /UNIQUE constraint failed: chain_transfers.watch, chain_transfers.hash, chain_transfers.ordinal/,
  ],
  [
    "two transfers of an id",
    () => transfer().replace("'trf_' || 9", "'trf_0'"),
    /UNIQUE constraint failed: chain_transfers.id/,
  ],
  ["a transfer that begins as unassigned", () => transfer({ status: "'unassigned'" }), /begins in a block/],
  [
    "a transfer that begins in no block",
    () => transfer({ block: "NULL", hash: "NULL" }),
    /begins in a block/,
  ],
  ["credited, and no deposit", onTransfer("trf_0", "status = 'credited'"), /chain_transfers_credited/],
  [
    "a deposit, and not credited",
    onTransfer("trf_0", "status = 'unassigned', deposit = 'dep_of_0'"),
    /chain_transfers_credited/,
  ],
  ["the deposit of another transfer", () => credit("trf_0", "dep_of_1"), IS_ITS_DEPOSIT],
  ["a deposit of another mode", () => credit("trf_0", "dep_sandbox"), IS_ITS_DEPOSIT],
  ["a deposit of another asset", () => credit("trf_0", "dep_eurc"), IS_ITS_DEPOSIT],
  ["a deposit of another amount", () => credit("trf_2", "dep_other_amount"), IS_ITS_DEPOSIT],
  ["a deposit before its block is reconciled", () => credit("trf_3", "dep_of_3"), IS_ITS_DEPOSIT],
  ["another deposit of a transfer", onTransfer("trf_1", "deposit = 'dep_of_0'"), ONCE],
  ["a transfer that is credited no more", onTransfer("trf_1", "status = 'found', deposit = NULL"), ONCE],
  ["what was sent, credited", () => "UPDATE chain_transfers SET status = 'found' WHERE id = 'trf_4'", ONCE],
  ["an unassigned one that is found again", onTransfer("trf_2", "status = 'found'"), ONCE],
  ...[
    "amount = 6",
    "hash = 'x'",
    "ordinal = 7",
    "counterparty = 'x'",
    "id = 'x'",
    "watch = 'x'",
    "created_at = 1",
  ].map((set): Wrong => [`a transfer changed: ${set}`, onTransfer("trf_0", set), FIXED]),
  ["a deleted transfer", () => "DELETE FROM chain_transfers", /transfers are kept/],
  ["a sandbox on a chain with real money", () => watch({ mode: "'sandbox'" }), /treasury_watches_chain/],
  ["live on a test network", () => watch({ chain: "84532" }), /treasury_watches_chain/],
  ["a watch of no mode", () => watch({ mode: "'test'" }), /treasury_watches_chain/],
  ["a reconciled block after the last one", onWatch("last_block = 2"), /treasury_watches_blocks/],
  ["less than nothing received", onWatch("received = -1"), /treasury_watches_sums/],
  ["half a unit sent", onWatch("sent = 0.5"), /treasury_watches_sums/, null],
  ["a watch that stopped for no known reason", onWatch("stopped = 'x'"), /treasury_watches_stopped/],
  [
    "two watches of a wallet",
    () => watch({ address: "'0xa'" }),
    /UNIQUE constraint failed: treasury_watches.chain_id, treasury_watches.token, treasury_watches.address/,
  ],
  ["two watches of an id", () => watch({ id: "'twa_one'" }), /UNIQUE constraint failed: treasury_watches.id/],
  ["a watch that begins with what came in", () => watch({ received: "1" }), /begins with the balance/],
  ["transfers that do not add up", onWatch("last_block = 3"), /the transfers add up to the balance/],
  ...[
    "mode = 'sandbox'",
    "asset = 'x'",
    "chain_id = 2",
    "token = 'x'",
    "address = 'x'",
    "first_block = 0",
    "id = 'x'",
    "created_at = 1",
  ].map((set): Wrong => [`a watch changed: ${set}`, onWatch(set), /is fixed/]),
  ["a deleted watch", () => "DELETE FROM treasury_watches", /watches are kept/],
  ["a sender changed", () => "UPDATE deposit_senders SET note = 'x'", /never changed/],
  [
    "a sender of two organisations",
    () =>
      "INSERT INTO deposit_senders SELECT mode, address, organisation_id, 'x', 0, NULL FROM deposit_senders",
    /UNIQUE constraint failed: deposit_senders.mode, deposit_senders.address/,
  ],
  [
    "a sender with capitals",
    () =>
      "INSERT INTO deposit_senders SELECT mode, replace(address, '00', 'AA'), organisation_id, 'x', 0, NULL FROM deposit_senders",
    /deposit_senders_address/,
  ],
  [
    "a sender of no mode",
    () =>
      "INSERT INTO deposit_senders SELECT 'test', address, organisation_id, 'x', 0, NULL FROM deposit_senders",
    /deposit_senders_mode/,
  ],
];

export const BEHIND_TRANSFERS: readonly Behind[] = [
  [
    "a transfer of no status",
    "chain_transfers_begin_uncredited",
    () => transfer({ status: "'gone'" }),
    /chain_transfers_status/,
  ],
  [
    "a deposit of two transfers",
    "chain_transfers_are_their_deposits",
    () => credit("trf_0", "dep_of_1"),
    /UNIQUE constraint failed: chain_transfers.deposit/,
  ],
];
