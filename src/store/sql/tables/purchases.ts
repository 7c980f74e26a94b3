import { sql } from "drizzle-orm";
import { blob, check, index, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { MODES } from "../../../core/roles.ts";
import { TEST_NETWORKS } from "../../../core/x402/chains.ts";
import {
  ATTEMPTS,
  KNOWN,
  type PaymentHeader,
  PHASES,
  PHASES_WITH_HEADER,
  PHASES_WITHOUT_WARRANT,
  WITNESSES,
} from "../../../core/x402/purchase.ts";
import type { Pays } from "../../../core/x402/quote.ts";
import { amount, bool, digest, int, json, literals, modeColumn, oneOf } from "../columns.ts";
import { organisationColumn } from "./directory.ts";

/** Purchases by x402: what was meant, what was signed, and what is known. Triggers keep a phase from going back. */

/** All that is known but that it is not known. */
const SAID = ["paid", "unpaid"] as const satisfies readonly (typeof KNOWN)[number][];

export const purchases = sqliteTable(
  "purchases",
  {
    id: text("id").primaryKey(),
    organisationId: organisationColumn(),
    mode: modeColumn(),
    agentId: text("agent_id"),
    method: text("method", { enum: ["GET", "POST"] }).notNull(),
    url: text("url").notNull(),
    maxAmount: amount("max_amount").notNull(),
    phase: text("phase", { enum: PHASES }).notNull(),
    quotedAmount: amount("quoted_amount"),
    quotedAsset: text("quoted_asset"),
    quotedPayee: text("quoted_payee"),
    timeoutSeconds: int("timeout_seconds"),
    pays: json<Pays | null>("pays"),
    warrantId: text("warrant_id"),
    payer: text("payer"),
    /** Of the token that `exact` is paid with, so that a wallet's open authorizations are found. */
    chainId: int("chain_id"),
    contract: text("contract"),
    nonce: text("nonce"),
    validBefore: int("valid_before"),
    header: json<PaymentHeader | null>("header"),
    attempt: text("attempt", { enum: ATTEMPTS }),
    known: text("known", { enum: KNOWN }),
    knownBy: text("known_by", { enum: WITNESSES }),
    transaction: text("transaction_id"),
    responseStatus: int("response_status"),
    responseHash: text("response_hash"),
    responseLastModifiedAt: int("response_last_modified_at"),
    contentBytes: int("content_bytes").notNull().default(0),
    createdAt: int("created_at").notNull(),
    answeredAt: int("answered_at"),
    endedAt: int("ended_at"),
    nextCheckAt: int("next_check_at"),
    chainSilentSince: int("chain_silent_since"),
    chainSaid: text("chain_said", { enum: SAID }),
    acknowledgedAt: int("acknowledged_at"),
    digest: digest("digest"),
  },
  (t) => [
    index("purchases_by_organisation").on(t.organisationId, t.mode, t.id),
    uniqueIndex("purchases_of_warrant").on(t.warrantId).where(sql`${t.warrantId} IS NOT NULL`),
    uniqueIndex("purchases_one_of_a_nonce").on(t.payer, t.nonce).where(sql`${t.nonce} IS NOT NULL`),
    index("purchases_unfinished").on(t.id).where(sql`${t.phase} <> 'ended'`),
    index("purchases_to_check").on(t.nextCheckAt).where(sql`${t.nextCheckAt} IS NOT NULL`),
    // A wallet's open authorizations are few, however many it has paid with.
    index("purchases_open_of_wallet")
      .on(t.payer, t.chainId, t.contract)
      .where(sql`${t.payer} IS NOT NULL AND ${t.known} IS NOT 'paid' AND ${t.known} IS NOT 'unpaid'`),
    index("purchases_paid_of_wallet")
      .on(t.payer, t.chainId, t.contract, t.answeredAt)
      .where(sql`${t.payer} IS NOT NULL AND ${t.known} = 'paid'`),
    index("purchases_that_chains_confirm").on(t.chainSaid, t.known).where(sql`${t.chainSaid} IS NOT NULL`),
    index("purchases_that_keep_content").on(t.responseHash).where(sql`${t.contentBytes} > 0`),
    index("purchases_with_bought_content")
      .on(t.createdAt)
      .where(sql`${t.contentBytes} > 0 AND ${t.warrantId} IS NOT NULL AND ${t.phase} = 'ended'`),
    index("purchases_with_free_content")
      .on(t.endedAt)
      .where(sql`${t.contentBytes} > 0 AND ${t.warrantId} IS NULL`),
    index("purchases_with_free_content_of_scope")
      .on(t.organisationId, t.mode)
      .where(sql`${t.contentBytes} > 0 AND ${t.warrantId} IS NULL`),
    check("purchases_mode", oneOf(t.mode, MODES)),
    check(
      "purchases_network",
      sql`${t.chainId} IS NULL OR (${t.mode} = 'sandbox') = (${t.chainId} IN (${sql.raw([...TEST_NETWORKS].join(", "))}))`,
    ),
    check("purchases_phase", oneOf(t.phase, PHASES)),
    check(
      "purchases_held",
      sql`${t.phase} IN (${sql.raw(literals(PHASES_WITHOUT_WARRANT))}) OR ${t.warrantId} IS NOT NULL`,
    ),
    check(
      "purchases_signed",
      sql`${t.phase} NOT IN (${sql.raw(literals(PHASES_WITH_HEADER))}) OR ${t.header} IS NOT NULL`,
    ),
    check("purchases_ended", sql`(${t.phase} = 'ended') = (${t.endedAt} IS NOT NULL)`),
  ],
);

/** Bytes that are kept once, by their SHA-256: what sellers answered, as long as a purchase keeps it. */
export const contents = sqliteTable("contents", {
  hash: text("hash").primaryKey(),
  bytes: blob("bytes", { mode: "buffer" }).notNull(),
});

/** The sums of what purchases count for in the stored content, kept with each batch of them. */
export const contentSums = sqliteTable(
  "content_sums",
  {
    scope: int("scope").notNull(),
    bought: bool("bought").notNull(),
    bytes: int("bytes").notNull(),
    digest: digest("digest"),
  },
  (t) => [
    primaryKey({ columns: [t.scope, t.bought] }),
    check("content_sums_not_negative", sql`${t.bytes} >= 0`),
  ],
);
