import { sql } from "drizzle-orm";
import { check, index, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { ClauseResult } from "../../../core/clauses/evidence.ts";
import type { ReasonCode } from "../../../core/clauses/reason-codes.ts";
import { DECISIONS, ESCALATION_STATUSES } from "../../../core/escalation.ts";
import { OUTCOMES } from "../../../core/policy.ts";
import type { PostingKind } from "../../../core/postings.ts";
import { ACTOR_KINDS, MODES } from "../../../core/roles.ts";
import { SETTLED_STATES, type Spec, STATES, type WarrantEncoding } from "../../../core/warrant.ts";
import { amount, bool, digest, hash, int, isInteger, json, modeColumn, oneOf } from "../columns.ts";
import { organisationColumn } from "./directory.ts";

/**
 * Money and what explains it. The CHECKs, and the triggers beside them in migrations/, stand behind the code: a negative
 * balance, an unbalanced posting, a sandbox row on a live rail, a changed trace or a second settlement is impossible even
 * for a buggy caller. One thing shows only at the next write of an account, or in the audit: a posting that its account was not
 * written with.
 */

/**
 * An organisation in one mode: what every row of its money refers to. Both are made with their organisation, by a trigger.
 */
export const scopes = sqliteTable(
  "scopes",
  { position: int("position").primaryKey(), organisationId: organisationColumn(), mode: modeColumn() },
  (t) => [
    uniqueIndex("scopes_by_organisation").on(t.organisationId, t.mode),
    check("scopes_mode", oneOf(t.mode, MODES)),
  ],
);

/**
 * What an organisation has of an asset in one mode. Its balances are written once for each batch of commands; a trigger
 * compares each write with the postings since the last one, so that a balance is never written by itself.
 */
export const accounts = sqliteTable(
  "accounts",
  {
    position: int("position").primaryKey(),
    scope: int("scope").notNull(),
    asset: text("asset").notNull(),
    available: amount("available").notNull(),
    held: amount("held").notNull(),
    paid: amount("paid").notNull(),
    funding: amount("funding").notNull(),
    /** Parts of `paid`: what is owed to payees, and what is in payouts under way. The rest is paid out. */
    payable: amount("payable").notNull().default(sql`0`),
    submitted: amount("submitted").notNull().default(sql`0`),
    /** The position of the newest posting that the balances contain; 0 before the first. */
    posted: int("posted").notNull(),
    digest: digest("digest"),
  },
  (t) => [
    uniqueIndex("accounts_by_scope").on(t.scope, t.asset),
    check("accounts_not_negative", sql`${t.available} >= 0 AND ${t.held} >= 0 AND ${t.paid} >= 0`),
    check("accounts_sum_to_zero", sql`${t.available} + ${t.held} + ${t.paid} + ${t.funding} = 0`),
    check(
      "accounts_integers",
      sql`typeof(${t.available} + ${t.held} + ${t.paid}) = 'integer' AND typeof(${t.funding}) = 'integer'`,
    ),
  ],
);

export const deposits = sqliteTable(
  "deposits",
  {
    position: int("position").primaryKey(),
    id: text("id").notNull().unique(),
    account: int("account").notNull(),
    amount: amount("amount").notNull(),
    reference: text("reference"),
    createdAt: int("created_at").notNull(),
    digest: digest("digest"),
  },
  (t) => [
    // What came in once is recorded once.
    uniqueIndex("deposits_by_reference").on(t.account, t.reference).where(sql`${t.reference} IS NOT NULL`),
    index("deposits_by_account").on(t.account),
    check("deposits_amount", sql`${t.amount} > 0`),
  ],
);

/** The rails of a mode. A row of one mode on a rail of the other is impossible (docs/concepts, "Sandbox and live"). */
export const RAIL_OF_MODE = { sandbox: "sandbox_book", live: "live_book" } as const;
/** The rails by which payouts are sent on chains. */
export const CHAIN_RAIL_OF_MODE = { sandbox: "sandbox_evm", live: "live_evm" } as const;

/**
 * Movements of money: the account, the rail, and what caused it. `cause` is the position of the deposit or its correction, of the
 * warrant that is held or settled, or of the payout. Which kinds and rails there are, and what each may move, is said by triggers: a later version
 * replaces a trigger, where a CHECK would have it rebuild the table.
 */
export const postings = sqliteTable(
  "postings",
  {
    position: int("position").primaryKey(),
    account: int("account").notNull(),
    kind: text("kind").$type<PostingKind>().notNull(),
    rail: text("rail").notNull(),
    cause: int("cause").notNull(),
    available: amount("available").notNull(),
    held: amount("held").notNull(),
    paid: amount("paid").notNull(),
    funding: amount("funding").notNull(),
    payable: amount("payable").notNull().default(sql`0`),
    submitted: amount("submitted").notNull().default(sql`0`),
    recordedAt: int("recorded_at").notNull(),
  },
  (t) => [
    // Something is posted once: a deposit, the hold of a warrant, its settlement, each move of a payout.
    uniqueIndex("postings_once").on(t.cause, t.kind),
    index("postings_by_account").on(t.account),
    check("postings_sum_to_zero", sql`${t.available} + ${t.held} + ${t.paid} + ${t.funding} = 0`),
    check(
      "postings_integers",
      sql`${isInteger(t.available)} AND ${isInteger(t.held)} AND ${isInteger(t.paid)} AND ${isInteger(t.funding)}`,
    ),
  ],
);

export const warrants = sqliteTable(
  "warrants",
  {
    /** The order in which they were committed: SQLite adds it to every index of the table. */
    position: int("position").primaryKey(),
    id: text("id").notNull().unique(),
    scope: int("scope").notNull(),
    account: int("account").notNull(),
    state: text("state", { enum: STATES }).notNull(),
    version: int("version").notNull(),
    amount: amount("amount").notNull(),
    releasedBps: int("released_bps"),
    payee: text("payee").notNull(),
    spec: json<Spec>("spec").notNull(),
    specHash: hash("spec_hash").notNull(),
    agent: int("agent"),
    session: int("session"),
    verifier: int("verifier"),
    policy: int("policy"),
    /** Of the rules that are built in, where no policy decides; else the policy has it. */
    rulesHash: hash("rules_hash"),
    traceHead: hash("trace_head").notNull(),
    deadline: int("deadline").notNull(),
    openedAt: int("opened_at").notNull(),
    verifyingSince: int("verifying_since"),
    graceUntil: int("grace_until"),
    settledAt: int("settled_at"),
    /** Who opened it: the position of an agent, or a person's id. Neither in rows of 0.1.0 that are older. */
    openedByAgent: int("opened_by_agent"),
    openedByUser: text("opened_by_user"),
    digest: digest("digest"),
  },
  (t) => [
    // A list without a state is made of those of every state.
    index("warrants_by_state").on(t.scope, t.state),
    index("warrants_by_deadline").on(t.scope, t.state, t.deadline),
    index("warrants_of_agent_by_state").on(t.agent, t.state).where(sql`${t.agent} IS NOT NULL`),
    index("warrants_of_agent_by_deadline")
      .on(t.agent, t.state, t.deadline)
      .where(sql`${t.agent} IS NOT NULL`),
    // The kill rule looks for what an agent's key opened without naming it. The warrants that name it are found above.
    index("warrants_opened_by_agent")
      .on(t.openedByAgent, t.state, t.deadline)
      .where(
        sql`${t.openedByAgent} IS NOT NULL AND ${t.openedByAgent} IS NOT ${t.agent} AND (${t.state} = 'held' OR ${t.state} = 'frozen')`,
      ),
    // The few that may thaw although their deadline has passed.
    index("warrants_frozen_in_grace")
      .on(t.graceUntil)
      .where(sql`${t.state} = 'frozen' AND ${t.graceUntil} IS NOT NULL`),
    index("warrants_overdue")
      .on(sql`CASE WHEN ${t.graceUntil} IS NULL THEN ${t.deadline} ELSE ${t.graceUntil} END`)
      .where(sql`${t.state} = 'held'`),
    index("warrants_verifying").on(t.verifyingSince).where(sql`${t.state} = 'verifying'`),
    check("warrants_state", oneOf(t.state, STATES)),
    check("warrants_amount", sql`${t.amount} > 0 AND ${isInteger(t.amount)}`),
    check("warrants_verifying_since", sql`(${t.state} = 'verifying') = (${t.verifyingSince} IS NOT NULL)`),
    check("warrants_version", sql`${t.version} >= 1`),
    check("warrants_rules", sql`(${t.policy} IS NULL) = (${t.rulesHash} IS NOT NULL)`),
    check(
      "warrants_share",
      sql`CASE ${t.state} WHEN 'released' THEN ${t.releasedBps} IS 10000 WHEN 'partially_released' THEN ${t.releasedBps} IS NOT NULL AND ${t.releasedBps} > 0 AND ${t.releasedBps} < 10000 ELSE ${t.releasedBps} IS NULL END`,
    ),
    check("warrants_settled_at", sql`(${t.settledAt} IS NOT NULL) = ${oneOf(t.state, SETTLED_STATES)}`),
  ],
);

/**
 * The trace of every warrant, in the order of commits. Entries with an event are the webhooks' outbox. The payload is not
 * kept: it is written again from the warrant, the entry and its check, by the encoding that the entry names.
 */
export const trace = sqliteTable(
  "trace",
  {
    position: int("position").primaryKey(),
    warrant: int("warrant").notNull(),
    sequence: int("sequence").notNull(),
    from: text("from_state", { enum: STATES }),
    to: text("to_state", { enum: STATES }).notNull(),
    actorKind: text("actor_kind", { enum: ACTOR_KINDS }).notNull(),
    actorId: text("actor_id"),
    recordedAt: int("recorded_at").notNull(),
    encoding: int("encoding").notNull(),
    schemaHashes: json<Readonly<Record<string, string>> | null>("schema_hashes"),
    checkId: text("check_id"),
    entryHash: hash("entry_hash").notNull(),
    eventId: text("event_id"),
    /** Which leaf of the log it is; null until the log has it. */
    leafIndex: int("leaf_index"),
    digest: digest("digest"),
  },
  (t) => [
    uniqueIndex("trace_by_warrant").on(t.warrant, t.sequence),
    uniqueIndex("trace_by_leaf").on(t.leafIndex).where(sql`${t.leafIndex} IS NOT NULL`),
    index("trace_without_leaf").on(t.position).where(sql`${t.leafIndex} IS NULL`),
    check("trace_actor", sql`(${t.actorKind} = 'system') = (${t.actorId} IS NULL)`),
    check("trace_opening", sql`(${t.sequence} = 0) = (${t.from} IS NULL)`),
    check("trace_schemas", sql`${t.schemaHashes} IS NULL OR ${t.sequence} = 0`),
    check("trace_check", sql`${t.checkId} IS NULL OR ${t.from} IS 'verifying'`),
  ],
);

export const checks = sqliteTable(
  "checks",
  {
    position: int("position").primaryKey(),
    id: text("id").notNull().unique(),
    warrant: int("warrant").notNull(),
    sourceUrl: text("source_url").notNull(),
    httpStatus: int("http_status"),
    bytes: int("bytes").notNull(),
    durationMs: int("duration_ms").notNull(),
    score: int("score").notNull(),
    passed: bool("passed").notNull(),
    reasonCodes: json<readonly ReasonCode[]>("reason_codes").notNull(),
    evidenceHash: hash("evidence_hash").notNull(),
    details: json<readonly ClauseResult[]>("details").notNull(),
    outcome: text("outcome", { enum: OUTCOMES }).notNull(),
    bandLabel: text("band_label"),
    evaluatedAt: int("evaluated_at").notNull(),
    evaluatorVersion: int("evaluator_version"),
    signedBy: text("signed_by"),
    capsuleHash: hash("capsule_hash"),
    digest: digest("digest"),
  },
  (t) => [
    index("checks_of_warrant").on(t.warrant),
    check("checks_score", sql`${t.score} BETWEEN 0 AND 10000`),
  ],
);

export const escalations = sqliteTable(
  "escalations",
  {
    id: text("id").primaryKey(),
    organisationId: organisationColumn(),
    mode: modeColumn(),
    warrantId: text("warrant_id")
      .notNull()
      .references(() => warrants.id),
    checkId: text("check_id"),
    score: int("score"),
    reasonCodes: json<readonly ReasonCode[]>("reason_codes").notNull(),
    status: text("status", { enum: ESCALATION_STATUSES }).notNull(),
    decision: text("decision", { enum: DECISIONS }),
    releasedBps: int("released_bps"),
    note: text("note"),
    raisedBy: text("raised_by"),
    resolvedBy: text("resolved_by"),
    createdAt: int("created_at").notNull(),
    resolvedAt: int("resolved_at"),
    digest: digest("digest"),
  },
  (t) => [
    index("escalations_by_status").on(t.organisationId, t.mode, t.status, t.id),
    uniqueIndex("escalations_one_unresolved").on(t.warrantId).where(sql`${t.status} <> 'resolved'`),
    index("escalations_by_warrant").on(t.warrantId, t.id),
    index("escalations_waiting").on(t.createdAt, t.id).where(sql`${t.status} <> 'resolved'`),
    check("escalations_resolved", sql`(${t.status} = 'resolved') = (${t.resolvedAt} IS NOT NULL)`),
  ],
);

export const idempotencyKeys = sqliteTable(
  "idempotency_keys",
  {
    position: int("position").primaryKey(),
    scope: int("scope").notNull(),
    key: text("key").notNull(),
    fingerprint: hash("fingerprint").notNull(),
    /** The warrant or the purchase that ends the request; null once it has ended. */
    holder: text("holder"),
    /** Null while the request is running. */
    status: int("status"),
    /** What a replay answers, where it is not a warrant. */
    body: text("body"),
    /** The warrant that a replay answers, at a version; written again by the encoding that the original was written by. */
    warrant: int("warrant"),
    version: int("version"),
    encoding: int("encoding").$type<WarrantEncoding>(),
    contentHash: text("content_hash"),
    createdAt: int("created_at").notNull(),
    digest: digest("digest"),
  },
  (t) => [
    uniqueIndex("idempotency_keys_by_key").on(t.scope, t.key),
    index("idempotency_keys_by_creation").on(t.createdAt).where(sql`${t.contentHash} IS NULL`),
    index("idempotency_keys_with_content").on(t.createdAt).where(sql`${t.contentHash} IS NOT NULL`),
    uniqueIndex("idempotency_keys_in_flight").on(t.holder).where(sql`${t.status} IS NULL`),
    check("idempotency_keys_holder", sql`(${t.status} IS NULL) = (${t.holder} IS NOT NULL)`),
    check(
      "idempotency_keys_outcome",
      sql`(${t.body} IS NOT NULL) + (${t.warrant} IS NOT NULL) = (${t.status} IS NOT NULL)`,
    ),
    check(
      "idempotency_keys_warrant",
      sql`(${t.warrant} IS NULL) = (${t.version} IS NULL) AND (${t.warrant} IS NULL) = (${t.encoding} IS NULL)`,
    ),
  ],
);

/**
 * How far each table came from PostgreSQL, where the ledger was copied from there: its last position then. Positions up to it have gaps,
 * since there they are given in blocks; after it a gap means that a row was deleted.
 */
export const importedTables = sqliteTable("imported_tables", {
  name: text("name").primaryKey(),
  last: int("last").notNull(),
  digest: digest("digest"),
});

/** Warrants by state and agent (0 where none), kept with each batch of moves, so that nobody has to count rows. */
export const warrantCounts = sqliteTable(
  "warrant_counts",
  {
    scope: int("scope").notNull(),
    agent: int("agent").notNull(),
    state: text("state", { enum: STATES }).notNull(),
    count: int("count").notNull(),
    digest: digest("digest"),
  },
  (t) => [
    primaryKey({ columns: [t.scope, t.agent, t.state] }),
    check("warrant_counts_not_negative", sql`${t.count} >= 0`),
  ],
);
