import { sql } from "drizzle-orm";
import { check, index, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { CORRECTION_STATUSES } from "../../../core/correction.ts";
import { PAYOUT_STATUSES, type Payout } from "../../../core/payout.ts";
import { amount, digest, int, isInteger, oneOf } from "../columns.ts";

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
