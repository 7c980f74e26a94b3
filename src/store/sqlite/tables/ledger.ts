import { sql } from "drizzle-orm";
import { check, index, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { ClauseResult } from "../../../core/clauses/evidence.ts";
import type { ReasonCode } from "../../../core/clauses/reason-codes.ts";
import { DECISIONS } from "../../../core/escalation.ts";
import { OUTCOMES } from "../../../core/policy.ts";
import { MODES } from "../../../core/roles.ts";
import { EVENT_TYPES, type Spec, STATES } from "../../../core/warrant.ts";
import { amount, bool, int, json, modeColumn, oneOf } from "../columns.ts";
import { organisationColumn } from "./directory.ts";

/**
 * Money and what explains it. The CHECKs, and the triggers beside them in migrations/, stand behind the code: a negative
 * balance, an unbalanced posting, a sandbox row on a live rail, a changed trace or a second settlement is impossible even
 * for a buggy caller.
 */

export const deposits = sqliteTable(
  "deposits",
  {
    id: text("id").primaryKey(),
    organisationId: organisationColumn(),
    mode: modeColumn(),
    asset: text("asset").notNull(),
    amount: amount("amount").notNull(),
    reference: text("reference"),
    createdAt: int("created_at").notNull(),
  },
  (t) => [check("deposits_amount", sql`${t.amount} > 0`), check("deposits_mode", oneOf(t.mode, MODES))],
);

/** Kept by a trigger on `postings`: a balance is never written by itself. */
export const balances = sqliteTable(
  "balances",
  {
    organisationId: organisationColumn(),
    mode: modeColumn(),
    asset: text("asset").notNull(),
    available: amount("available").notNull(),
    held: amount("held").notNull(),
    paid: amount("paid").notNull(),
    funding: amount("funding").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.organisationId, t.mode, t.asset] }),
    check("balances_not_negative", sql`${t.available} >= 0 AND ${t.held} >= 0 AND ${t.paid} >= 0`),
    check("balances_sum_to_zero", sql`${t.available} + ${t.held} + ${t.paid} + ${t.funding} = 0`),
    check(
      "balances_integers",
      sql`typeof(${t.available} + ${t.held} + ${t.paid}) = 'integer' AND typeof(${t.funding}) = 'integer'`,
    ),
  ],
);

/** The rails of a mode. A row of one mode on a rail of the other is impossible (interface.md, What the service does, 9). */
export const RAIL_OF_MODE = { sandbox: "sandbox_book", live: "live_book" } as const;

export const postings = sqliteTable(
  "postings",
  {
    id: int("id").primaryKey(),
    organisationId: organisationColumn(),
    mode: modeColumn(),
    rail: text("rail", { enum: [RAIL_OF_MODE.sandbox, RAIL_OF_MODE.live] }).notNull(),
    asset: text("asset").notNull(),
    warrantId: text("warrant_id"),
    depositId: text("deposit_id"),
    available: amount("available").notNull(),
    held: amount("held").notNull(),
    paid: amount("paid").notNull(),
    funding: amount("funding").notNull(),
    payee: text("payee"),
    recordedAt: int("recorded_at").notNull(),
  },
  (t) => [
    index("postings_by_warrant").on(t.warrantId),
    check("postings_sum_to_zero", sql`${t.available} + ${t.held} + ${t.paid} + ${t.funding} = 0`),
    check("postings_paid_to_somebody", sql`${t.paid} >= 0 AND (${t.paid} = 0) = (${t.payee} IS NULL)`),
    check("postings_of_one_cause", sql`(${t.warrantId} IS NULL) <> (${t.depositId} IS NULL)`),
    check("postings_rail_of_mode", sql`${t.rail} = ${t.mode} || '_book'`),
    check("postings_deposit_funds", sql`(${t.depositId} IS NULL) = (${t.funding} = 0)`),
    check(
      "postings_integers",
      sql`typeof(${t.available}) = 'integer' AND typeof(${t.held}) = 'integer' AND typeof(${t.paid}) = 'integer' AND typeof(${t.funding}) = 'integer'`,
    ),
  ],
);

export const warrants = sqliteTable(
  "warrants",
  {
    id: text("id").primaryKey(),
    organisationId: organisationColumn(),
    mode: modeColumn(),
    state: text("state", { enum: STATES }).notNull(),
    version: int("version").notNull(),
    amount: amount("amount").notNull(),
    asset: text("asset").notNull(),
    releasedBps: int("released_bps"),
    payee: text("payee").notNull(),
    spec: json<Spec>("spec").notNull(),
    specHash: text("spec_hash").notNull(),
    agentId: text("agent_id"),
    sessionId: text("session_id"),
    verifierId: text("verifier_id"),
    policyId: text("policy_id"),
    policyVersion: int("policy_version"),
    rulesHash: text("rules_hash").notNull(),
    traceHead: text("trace_head"),
    deadline: int("deadline").notNull(),
    openedAt: int("opened_at").notNull(),
    verifyingSince: int("verifying_since"),
    settledAt: int("settled_at"),
  },
  (t) => [
    index("warrants_by_creation").on(t.organisationId, t.mode, t.id),
    index("warrants_by_deadline").on(t.organisationId, t.mode, t.deadline, t.id),
    index("warrants_by_state_and_creation").on(t.organisationId, t.mode, t.state, t.id),
    index("warrants_by_state_and_deadline").on(t.organisationId, t.mode, t.state, t.deadline, t.id),
    index("warrants_by_agent_and_creation").on(t.agentId, t.id).where(sql`${t.agentId} IS NOT NULL`),
    index("warrants_by_agent_and_deadline")
      .on(t.agentId, t.deadline, t.id)
      .where(sql`${t.agentId} IS NOT NULL`),
    index("warrants_by_agent_and_state")
      .on(t.agentId, t.state, t.deadline, t.id)
      .where(sql`${t.agentId} IS NOT NULL`),
    index("warrants_overdue").on(t.deadline).where(sql`${t.state} = 'held'`),
    index("warrants_verifying").on(t.id).where(sql`${t.state} = 'verifying'`),
    check("warrants_mode", oneOf(t.mode, MODES)),
    check("warrants_state", oneOf(t.state, STATES)),
    check("warrants_amount", sql`${t.amount} > 0 AND typeof(${t.amount}) = 'integer'`),
    check("warrants_verifying_since", sql`(${t.state} = 'verifying') = (${t.verifyingSince} IS NOT NULL)`),
    check("warrants_version", sql`${t.version} >= 1`),
    check(
      "warrants_share",
      sql`CASE ${t.state} WHEN 'released' THEN ${t.releasedBps} IS 10000 WHEN 'partially_released' THEN ${t.releasedBps} IS NOT NULL AND ${t.releasedBps} > 0 AND ${t.releasedBps} < 10000 ELSE ${t.releasedBps} IS NULL END`,
    ),
    check(
      "warrants_settled_at",
      sql`(${t.settledAt} IS NOT NULL) = (${t.state} IN ('released', 'partially_released', 'refunded', 'expired'))`,
    ),
  ],
);

/** The trace of every warrant, in the order of commits. Entries with an event are the webhooks' outbox. */
export const trace = sqliteTable(
  "trace",
  {
    position: int("position").primaryKey(),
    warrantId: text("warrant_id").notNull(),
    sequence: int("sequence").notNull(),
    from: text("from_state", { enum: STATES }),
    to: text("to_state", { enum: STATES }).notNull(),
    actorKind: text("actor_kind", { enum: ["agent", "user", "system"] }).notNull(),
    actorId: text("actor_id"),
    recordedAt: int("recorded_at").notNull(),
    payload: text("payload").notNull(),
    payloadHash: text("payload_hash").notNull(),
    rulesHash: text("rules_hash").notNull(),
    previous: text("previous"),
    entryHash: text("entry_hash").notNull(),
    eventId: text("event_id"),
    eventType: text("event_type", { enum: EVENT_TYPES }),
  },
  (t) => [
    uniqueIndex("trace_by_warrant").on(t.warrantId, t.sequence),
    check("trace_actor", sql`(${t.actorKind} = 'system') = (${t.actorId} IS NULL)`),
    check("trace_event", sql`(${t.eventId} IS NULL) = (${t.eventType} IS NULL)`),
    check(
      "trace_opening",
      sql`(${t.sequence} = 0) = (${t.from} IS NULL) AND (${t.sequence} = 0) = (${t.previous} IS NULL)`,
    ),
  ],
);

export const checks = sqliteTable(
  "checks",
  {
    id: text("id").primaryKey(),
    warrantId: text("warrant_id")
      .notNull()
      .references(() => warrants.id),
    sourceUrl: text("source_url").notNull(),
    httpStatus: int("http_status"),
    bytes: int("bytes").notNull(),
    durationMs: int("duration_ms").notNull(),
    score: int("score").notNull(),
    passed: bool("passed").notNull(),
    reasonCodes: json<readonly ReasonCode[]>("reason_codes").notNull(),
    evidenceHash: text("evidence_hash").notNull(),
    details: json<readonly ClauseResult[]>("details").notNull(),
    outcome: text("outcome", { enum: OUTCOMES }).notNull(),
    bandLabel: text("band_label"),
    evaluatedAt: int("evaluated_at").notNull(),
  },
  (t) => [
    index("checks_by_warrant").on(t.warrantId, t.id),
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
    status: text("status", { enum: ["open", "disputed", "resolved"] }).notNull(),
    decision: text("decision", { enum: DECISIONS }),
    releasedBps: int("released_bps"),
    note: text("note"),
    raisedBy: text("raised_by"),
    resolvedBy: text("resolved_by"),
    createdAt: int("created_at").notNull(),
    resolvedAt: int("resolved_at"),
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
    organisationId: organisationColumn(),
    mode: modeColumn(),
    key: text("key").notNull(),
    fingerprint: text("fingerprint").notNull(),
    /** The warrant or the purchase that ends the request; null once it has ended. */
    holder: text("holder"),
    /** Null while the request is running. */
    status: int("status"),
    body: text("body"),
    contentHash: text("content_hash"),
    createdAt: int("created_at").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.organisationId, t.mode, t.key] }),
    index("idempotency_keys_by_creation").on(t.createdAt).where(sql`${t.contentHash} IS NULL`),
    // Those whose answer has a body of its own are forgotten with it, fewer at a time.
    index("idempotency_keys_with_content").on(t.createdAt).where(sql`${t.contentHash} IS NOT NULL`),
    index("idempotency_keys_of_content").on(t.contentHash).where(sql`${t.contentHash} IS NOT NULL`),
    uniqueIndex("idempotency_keys_in_flight").on(t.holder).where(sql`${t.status} IS NULL`),
    check("idempotency_keys_outcome", sql`(${t.status} IS NULL) = (${t.body} IS NULL)`),
    check("idempotency_keys_holder", sql`(${t.status} IS NULL) = (${t.holder} IS NOT NULL)`),
  ],
);

/** Warrants per state and agent ('' where none), kept with each move, so that nobody has to count rows. */
export const warrantCounts = sqliteTable(
  "warrant_counts",
  {
    organisationId: organisationColumn(),
    mode: modeColumn(),
    agentId: text("agent_id").notNull(),
    state: text("state", { enum: STATES }).notNull(),
    count: int("count").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.organisationId, t.mode, t.agentId, t.state] }),
    check("warrant_counts_not_negative", sql`${t.count} >= 0`),
  ],
);
