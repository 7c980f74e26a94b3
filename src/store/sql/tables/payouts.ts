import { type SQL, sql } from "drizzle-orm";
import { check, index, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { CORRECTION_STATUSES } from "../../../core/correction.ts";
import { PAYOUT_STATUSES, type Payout } from "../../../core/payout.ts";
import { PAYEE_CODES, RAIL_CODES } from "../../../core/rail.ts";
import { TEST_NETWORKS } from "../../../core/x402/chains.ts";
import { amount, bool, digest, int, isInteger, modeColumn, oneOf } from "../columns.ts";
import { CHAIN_RAIL_OF_MODE } from "./ledger.ts";

/** What is owed to payees, how it is paid out, and how deposits are corrected. The postings of these are in the ledger with all others. */

/**
 * What deposits really brought. `amount_after` is what its deposit counts for from then on. One of a deposit at a time waits for a
 * second person.
 */
export const corrections = sqliteTable(
  "corrections",
  {
    position: int("position").primaryKey(),
    id: text("id").notNull().unique(),
    account: int("account").notNull(),
    deposit: int("deposit").notNull(),
    amountBefore: amount("amount_before").notNull(),
    amountAfter: amount("amount_after").notNull(),
    reason: text("reason").notNull(),
    status: text("status", { enum: CORRECTION_STATUSES }).notNull(),
    proposedBy: text("proposed_by"),
    decidedBy: text("decided_by"),
    createdAt: int("created_at").notNull(),
    decidedAt: int("decided_at"),
    digest: digest("digest"),
  },
  (t) => [
    index("corrections_by_account").on(t.account),
    index("corrections_of_deposit").on(t.deposit),
    uniqueIndex("corrections_one_proposed").on(t.deposit).where(sql`${t.status} = 'proposed'`),
    check("corrections_status", oneOf(t.status, CORRECTION_STATUSES)),
    check(
      "corrections_amounts",
      sql`${t.amountBefore} >= 0 AND ${t.amountAfter} >= 0 AND ${t.amountBefore} <> ${t.amountAfter} AND ${isInteger(t.amountBefore)} AND ${isInteger(t.amountAfter)}`,
    ),
    check(
      "corrections_decided",
      sql`(${t.decidedAt} IS NULL) = (${t.decidedBy} IS NULL) AND (${t.status} <> 'proposed' OR ${t.decidedAt} IS NULL) AND (${t.status} <> 'withdrawn' OR ${t.decidedAt} IS NOT NULL)`,
    ),
    check(
      "corrections_two_people",
      sql`${t.status} <> 'recorded' OR ${t.decidedBy} IS NOT ${t.proposedBy} OR ${t.decidedBy} IS NULL`,
    ),
  ],
);

/**
 * What was paid to a payee of an account. Its balances follow from the postings, and are written once for each batch of commands;
 * the audit computes all of it anew.
 */
export const payees = sqliteTable(
  "payees",
  {
    position: int("position").primaryKey(),
    account: int("account").notNull(),
    payee: text("payee").notNull(),
    payable: amount("payable").notNull(),
    submitted: amount("submitted").notNull(),
    paidOut: amount("paid_out").notNull(),
  },
  (t) => [
    uniqueIndex("payees_by_name").on(t.account, t.payee),
    // A list of all payees is made of those that something is owed to, and the others.
    index("payees_owed").on(t.account).where(sql`${t.payable} > 0`),
    index("payees_owed_nothing").on(t.account).where(sql`${t.payable} = 0`),
    check("payees_not_negative", sql`${t.payable} >= 0 AND ${t.submitted} >= 0 AND ${t.paidOut} >= 0`),
    check(
      "payees_integers",
      sql`${isInteger(t.payable)} AND ${isInteger(t.submitted)} AND ${isInteger(t.paidOut)}`,
    ),
  ],
);

/** Money on its way out of the ledger. Its row is there from when it is submitted on. */
export const payouts = sqliteTable(
  "payouts",
  {
    position: int("position").primaryKey(),
    id: text("id").notNull().unique(),
    account: int("account").notNull(),
    payee: int("payee").notNull(),
    amount: amount("amount").notNull(),
    rail: text("rail").notNull(),
    status: text("status", { enum: PAYOUT_STATUSES }).$type<Payout["status"]>().notNull(),
    version: int("version").notNull(),
    reference: text("reference"),
    reason: text("reason"),
    createdAt: int("created_at").notNull(),
    endedAt: int("ended_at"),
    digest: digest("digest"),
  },
  (t) => [
    // A list without a status is made of those of every status.
    index("payouts_by_status").on(t.account, t.status),
    index("payouts_of_payee").on(t.payee, t.status),
    check("payouts_amount", sql`${t.amount} > 0 AND ${isInteger(t.amount)}`),
    check("payouts_status", oneOf(t.status, PAYOUT_STATUSES)),
    check("payouts_version", sql`${t.version} >= 1`),
    check("payouts_ended", sql`(${t.status} = 'submitted') = (${t.endedAt} IS NULL)`),
    check("payouts_reference", sql`${t.status} <> 'paid' OR ${t.reference} IS NOT NULL`),
    check("payouts_reason", sql`(${t.status} = 'failed') = (${t.reason} IS NOT NULL)`),
  ],
);

const isTestNetwork = (chainId: { getSQL(): SQL }): SQL =>
  sql`${chainId} IN (${sql.raw([...TEST_NETWORKS].join(", "))})`;

/** Which transaction of a wallet pays which payout. The sandbox has test networks only, and live has none of them. */
export const payoutTransactions = sqliteTable(
  "payout_transactions",
  {
    chainId: int("chain_id").notNull(),
    wallet: text("wallet").notNull(),
    nonce: int("nonce").notNull(),
    payout: int("payout").notNull().unique(),
    account: int("account").notNull(),
    rail: text("rail", { enum: [CHAIN_RAIL_OF_MODE.sandbox, CHAIN_RAIL_OF_MODE.live] }).notNull(),
    token: text("token").notNull(),
    byPerson: bool("by_person").notNull(),
    judged: bool("judged").notNull(),
    problem: text("problem"),
    recordedAt: int("recorded_at").notNull(),
    digest: digest("digest"),
  },
  (t) => [
    primaryKey({ columns: [t.chainId, t.wallet, t.nonce] }),
    index("payout_transactions_to_judge").on(t.chainId, t.wallet, t.nonce).where(sql`${t.judged} = 0`),
    index("payout_transactions_in_limits").on(t.account, t.recordedAt).where(sql`${t.byPerson} = 0`),
    check("payout_transactions_rail", oneOf(t.rail, Object.values(CHAIN_RAIL_OF_MODE))),
    check(
      "payout_transactions_chain",
      sql`(${t.rail} = '${sql.raw(CHAIN_RAIL_OF_MODE.sandbox)}') = (${isTestNetwork(t.chainId)})`,
    ),
    check(
      "payout_transactions_flags",
      sql`(${t.byPerson} = 0 OR ${t.byPerson} = 1) AND (${t.judged} = 0 OR ${t.judged} = 1)`,
    ),
  ],
);

/** What the server found when it last looked at a payee that is owed something on a chain, and what a person has released. */
export const payoutWaits = sqliteTable(
  "payout_waits",
  {
    payee: int("payee").primaryKey(),
    code: text("code", { enum: PAYEE_CODES }),
    detail: text("detail"),
    until: int("until"),
    released: amount("released"),
    since: int("since").notNull(),
    digest: digest("digest"),
  },
  (t) => [
    check("payout_waits_code", sql`${t.code} IS NULL OR ${oneOf(t.code, PAYEE_CODES)}`),
    check(
      "payout_waits_released",
      sql`${t.released} IS NULL OR (${t.released} > 0 AND ${isInteger(t.released)})`,
    ),
  ],
);

/** The token that stands for an asset of a mode, as the server last had it, and what keeps it from paying. */
export const railStates = sqliteTable(
  "rail_states",
  {
    mode: modeColumn(),
    asset: text("asset").notNull(),
    chainId: int("chain_id").notNull(),
    wallet: text("wallet").notNull(),
    token: text("token").notNull(),
    acceptedNonce: int("accepted_nonce"),
    seenNonce: int("seen_nonce"),
    code: text("code", { enum: RAIL_CODES }),
    detail: text("detail"),
    since: int("since"),
    digest: digest("digest"),
  },
  (t) => [
    primaryKey({ columns: [t.mode, t.asset] }),
    check("rail_states_code", sql`${t.code} IS NULL OR ${oneOf(t.code, RAIL_CODES)}`),
    check("rail_states_since", sql`(${t.code} IS NULL) = (${t.since} IS NULL)`),
    check("rail_states_chain", sql`(${t.mode} = 'sandbox') = (${isTestNetwork(t.chainId)})`),
  ],
);
