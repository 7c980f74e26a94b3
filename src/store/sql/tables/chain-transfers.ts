import { sql } from "drizzle-orm";
import { check, index, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { TRANSFER_STATUSES } from "../../../core/chain-transfer.ts";
import { STOP_REASONS } from "../../../core/treasury-watch.ts";
import { TEST_NETWORKS } from "../../../core/x402/chains.ts";
import { amount, digest, int, isInteger, modeColumn, oneOf } from "../columns.ts";
import { organisationColumn } from "./directory.ts";
import { deposits } from "./ledger.ts";

/** What comes in to treasuries on chains, and what leaves them. Triggers keep a transfer from being credited twice. */

const testNetworks = sql.raw([...TEST_NETWORKS].join(", "));

/** How far each treasury was looked at, and what its transfers add up to. */
export const treasuryWatches = sqliteTable(
  "treasury_watches",
  {
    id: text("id").primaryKey(),
    mode: modeColumn(),
    asset: text("asset").notNull(),
    chainId: int("chain_id").notNull(),
    token: text("token").notNull(),
    address: text("address").notNull(),
    firstBlock: int("first_block").notNull(),
    firstHash: text("first_hash").notNull(),
    opening: amount("opening").notNull(),
    lastBlock: int("last_block").notNull(),
    lastHash: text("last_hash").notNull(),
    received: amount("received").notNull(),
    sent: amount("sent").notNull(),
    reconciledBlock: int("reconciled_block").notNull(),
    reconciledHash: text("reconciled_hash").notNull(),
    balance: amount("balance").notNull(),
    stopped: text("stopped", { enum: STOP_REASONS }),
    createdAt: int("created_at").notNull(),
    digest: digest("digest"),
  },
  (t) => [
    uniqueIndex("treasury_watches_by_wallet").on(t.chainId, t.token, t.address),
    check(
      "treasury_watches_chain",
      sql`(${t.mode} = 'sandbox' AND ${t.chainId} IN (${testNetworks})) OR (${t.mode} = 'live' AND ${t.chainId} NOT IN (${testNetworks}))`,
    ),
    check(
      "treasury_watches_blocks",
      sql`${t.firstBlock} >= 0 AND ${t.firstBlock} <= ${t.reconciledBlock} AND ${t.reconciledBlock} <= ${t.lastBlock}`,
    ),
    check(
      "treasury_watches_sums",
      sql`${t.opening} >= 0 AND ${t.received} >= 0 AND ${t.sent} >= 0 AND ${t.balance} >= 0 AND ${isInteger(t.opening)} AND ${isInteger(t.received)} AND ${isInteger(t.sent)} AND ${isInteger(t.balance)}`,
    ),
    check("treasury_watches_stopped", sql`${t.stopped} IS NULL OR ${oneOf(t.stopped, STOP_REASONS)}`),
  ],
);

/** Every transfer to and from a treasury since its watch began. */
export const chainTransfers = sqliteTable(
  "chain_transfers",
  {
    watchId: text("watch")
      .notNull()
      .references(() => treasuryWatches.id),
    hash: text("hash").notNull(),
    ordinal: int("ordinal").notNull(),
    id: text("id").notNull().unique(),
    status: text("status", { enum: TRANSFER_STATUSES }).notNull(),
    counterparty: text("counterparty").notNull(),
    amount: amount("amount").notNull(),
    block: int("block"),
    blockHash: text("block_hash"),
    depositId: text("deposit").references(() => deposits.id),
    createdAt: int("created_at").notNull(),
    digest: digest("digest"),
  },
  (t) => [
    primaryKey({ columns: [t.watchId, t.hash, t.ordinal] }),
    index("chain_transfers_by_block").on(t.watchId, t.block),
    index("chain_transfers_to_assign")
      .on(t.watchId, t.status)
      .where(sql`${t.depositId} IS NULL AND ${t.status} <> 'sent'`),
    uniqueIndex("chain_transfers_of_deposit").on(t.depositId).where(sql`${t.depositId} IS NOT NULL`),
    check("chain_transfers_amount", sql`${t.amount} > 0 AND ${isInteger(t.amount)}`),
    check("chain_transfers_ordinal", sql`${t.ordinal} >= 0`),
    check("chain_transfers_status", oneOf(t.status, TRANSFER_STATUSES)),
    check("chain_transfers_block", sql`(${t.block} IS NULL) = (${t.blockHash} IS NULL)`),
    check("chain_transfers_credited", sql`(${t.status} = 'credited') = (${t.depositId} IS NOT NULL)`),
  ],
);

/** Whose transfers from which addresses are. An address has one organisation of a mode. */
export const depositSenders = sqliteTable(
  "deposit_senders",
  {
    mode: modeColumn(),
    address: text("address").notNull(),
    organisationId: organisationColumn(),
    note: text("note"),
    createdAt: int("created_at").notNull(),
    digest: digest("digest"),
  },
  (t) => [
    primaryKey({ columns: [t.mode, t.address] }),
    index("deposit_senders_of_organisation").on(t.organisationId, t.mode, t.address),
    check("deposit_senders_address", sql`length(${t.address}) = 42 AND ${t.address} = lower(${t.address})`),
    check("deposit_senders_mode", sql`${t.mode} = 'sandbox' OR ${t.mode} = 'live'`),
  ],
);
