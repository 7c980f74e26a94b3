import { sql } from "drizzle-orm";
import { check, customType, index, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { type Signing, TRANSACTION_STATES } from "../../../core/chain-transaction.ts";
import { amount, digest, hash, int, oneOf } from "../columns.ts";

/** What the instance's own wallets send to chains. Triggers keep what was signed. */

type StoredSigning = Omit<Signing, "fees"> & {
  readonly fees: { readonly [Fee in keyof Signing["fees"]]: string };
};

/** As JSON, oldest first. Fees are digits there, since a double does not hold every one. */
const signings = customType<{ data: readonly Signing[]; driverData: string }>({
  dataType: () => "text",
  fromDriver: (json) =>
    (JSON.parse(json) as StoredSigning[]).map(({ fees: { max, priority }, ...rest }) => ({
      ...rest,
      fees: { max: BigInt(max), priority: BigInt(priority) },
    })),
  toDriver: (all) =>
    JSON.stringify(
      all.map(({ hash, raw, fees: { max, priority }, signedAtBlock }) => ({
        ...{ hash, raw, fees: { max: max.toString(), priority: priority.toString() }, signedAtBlock },
      })),
    ),
});

/** Every transaction that a wallet signed. The primary key: one of each nonce. */
export const chainTransactions = sqliteTable(
  "chain_transactions",
  {
    chainId: int("chain_id").notNull(),
    wallet: text("wallet").notNull(),
    nonce: int("nonce").notNull(),
    to: text("to").notNull(),
    data: text("data").notNull(),
    gas: amount("gas").notNull(),
    signings: signings("signings").notNull(),
    state: text("state", { enum: TRANSACTION_STATES }).notNull(),
    block: int("block"),
    minedHash: text("mined_hash"),
    createdAt: int("created_at").notNull(),
    digest: digest("digest"),
  },
  (t) => [
    primaryKey({ columns: [t.chainId, t.wallet, t.nonce] }),
    index("chain_transactions_open").on(t.chainId, t.wallet, t.nonce).where(sql`${t.state} = 'open'`),
    check("chain_transactions_state", oneOf(t.state, TRANSACTION_STATES)),
    check(
      "chain_transactions_confirmed",
      sql`(${t.state} = 'confirmed') = (${t.block} IS NOT NULL) AND (${t.block} IS NULL) = (${t.minedHash} IS NULL)`,
    ),
    check("chain_transactions_signed", sql`json_array_length(${t.signings}) > 0`),
    check("chain_transactions_numbers", sql`${t.nonce} >= 0 AND ${t.gas} > 0`),
  ],
);

/** Which transaction brings which checkpoint of the log to its chain. */
export const logAnchors = sqliteTable(
  "log_anchors",
  {
    chainId: int("chain_id").notNull(),
    wallet: text("wallet").notNull(),
    nonce: int("nonce").notNull(),
    checkpoint: int("checkpoint").notNull(),
    size: int("size").notNull(),
    root: hash("root").notNull(),
    digest: digest("digest"),
  },
  (t) => [primaryKey({ columns: [t.chainId, t.wallet, t.nonce] }), index("log_anchors_by_size").on(t.size)],
);
