import { sql } from "drizzle-orm";
import { check, index, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { AGENT_STATUSES } from "../../../core/agent.ts";
import { ADMINISTRATOR_KINDS, AUDIT_ACTIONS } from "../../../core/audit-entry.ts";
import type { ClauseKind } from "../../../core/clauses/registry.ts";
import type { JsonSchema } from "../../../core/clauses/schema.ts";
import { DECISIONS } from "../../../core/escalation.ts";
import { SIGNED_VERBS } from "../../../core/passkey.ts";
import type { PolicyRules } from "../../../core/policy.ts";
import type { RetentionMark } from "../../../core/retention.ts";
import { MODES, ROLES } from "../../../core/roles.ts";
import type { Signer } from "../../../core/source-key.ts";
import { amount, bool, digest, int, isInteger, json, modeColumn, oneOf } from "../columns.ts";

/** What an organisation keeps besides its money: people, agents, keys, sessions, policies, verifiers, schemas. */

export const instances = sqliteTable("instances", {
  id: text("id").primaryKey(),
  baseUrl: text("base_url"),
  chainIds: json<readonly number[]>("chain_ids").notNull(),
  /** The newest version that has opened the ledger, and the oldest that may. */
  version: text("version").notNull(),
  oldestWriter: text("oldest_writer").notNull(),
  createdAt: int("created_at").notNull(),
  retentionMarks: json<readonly RetentionMark[]>("retention_marks").notNull().default([]),
  /** For how many days the last server kept idempotency keys. Null before the first one. */
  idempotencyDays: int("idempotency_days"),
  /** For how many days the last server kept capsules. Null before the first one that kept any. */
  capsuleDays: int("capsule_days"),
  restoredAt: int("restored_at"),
  acknowledgedAt: int("acknowledged_at"),
  restoredUnverifiedAt: int("restored_unverified_at"),
  witnessKey: text("witness_key"),
  lostWitnessKeys: json<readonly string[]>("lost_witness_keys").notNull().default([]),
});

export const organisations = sqliteTable("organisations", {
  id: text("id").primaryKey(),
  name: text("name").notNull(),
  killSwitch: bool("kill_switch").notNull(),
  passkeyThreshold: amount("passkey_threshold"),
  hidesSpecs: bool("hides_specs").notNull().default(false),
  secondFactor: bool("second_factor").notNull().default(false),
  messagingDecisions: bool("messaging_decisions").notNull().default(false),
  createdAt: int("created_at").notNull(),
});

export const organisationColumn = () =>
  text("organisation_id")
    .notNull()
    .references(() => organisations.id);

/** The order of commits: two processes draw their ids before they commit. SQLite adds it to every index of the table. */
const commitPosition = () => int("position").primaryKey();

export const userColumn = () =>
  text("user_id")
    .notNull()
    .references(() => users.id);

export const users = sqliteTable(
  "users",
  {
    id: text("id").primaryKey(),
    organisationId: organisationColumn(),
    email: text("email").notNull(),
    name: text("name").notNull(),
    role: text("role", { enum: ROLES }).notNull(),
    passwordHash: text("password_hash").notNull(),
    passwordResetAt: int("password_reset_at"),
    removedAt: int("removed_at"),
    createdAt: int("created_at").notNull(),
  },
  (t) => [
    uniqueIndex("users_by_email").on(t.email).where(sql`${t.removedAt} IS NULL`),
    index("users_by_organisation").on(t.organisationId),
    check("users_role", oneOf(t.role, ROLES)),
  ],
);

export const authSessions = sqliteTable(
  "auth_sessions",
  {
    tokenHash: text("token_hash").primaryKey(),
    userId: userColumn(),
    mode: modeColumn(),
    createdAt: int("created_at").notNull(),
    expiresAt: int("expires_at").notNull(),
    passkeyProved: bool("passkey_proved").notNull().default(false),
    network: text("network"),
    agent: text("agent"),
    lastUsedAt: int("last_used_at"),
  },
  (t) => [
    index("auth_sessions_by_user").on(t.userId, t.expiresAt),
    index("auth_sessions_by_end").on(t.expiresAt),
    check("auth_sessions_mode", oneOf(t.mode, MODES)),
  ],
);

export const passwordResets = sqliteTable(
  "password_resets",
  {
    tokenHash: text("token_hash").primaryKey(),
    userId: userColumn(),
    createdAt: int("created_at").notNull(),
    expiresAt: int("expires_at").notNull(),
    usedAt: int("used_at"),
  },
  (t) => [index("password_resets_by_user").on(t.userId)],
);

export const passkeys = sqliteTable(
  "passkeys",
  {
    id: text("id").primaryKey(),
    organisationId: organisationColumn(),
    userId: userColumn(),
    name: text("name").notNull(),
    publicKey: text("public_key").notNull(),
    counter: int("counter").notNull(),
    transports: json<readonly string[]>("transports").notNull(),
    countsForThreshold: bool("counts_for_threshold").notNull(),
    createdAt: int("created_at").notNull(),
    lastUsedAt: int("last_used_at"),
  },
  (t) => [
    index("passkeys_by_user").on(t.userId, t.createdAt),
    index("passkeys_of_organisation").on(t.organisationId).where(sql`${t.countsForThreshold} = 1`),
  ],
);

export const passkeyApprovals = sqliteTable("passkey_approvals", {
  tokenHash: text("token_hash").primaryKey(),
  userId: userColumn(),
  passkeyId: text("passkey_id").notNull(),
  /** The column has its name from when only warrants were decided so. */
  subject: text("warrant_id").notNull(),
  version: int("version").notNull(),
  decision: text("decision", { enum: [...DECISIONS, ...SIGNED_VERBS] }).notNull(),
  releasedBps: int("released_bps"),
  assertion: text("assertion").notNull(),
  createdAt: int("created_at").notNull(),
  expiresAt: int("expires_at").notNull(),
  usedAt: int("used_at"),
});

/** Keys that sources sign their answers with. A removed one stays, for what was recorded with it. */
export const sourceKeys = sqliteTable(
  "source_keys",
  {
    id: text("id").primaryKey(),
    organisationId: organisationColumn(),
    origin: text("origin").notNull(),
    signer: json<Signer>("signer").notNull(),
    createdAt: int("created_at").notNull(),
    removedAt: int("removed_at"),
    digest: digest("digest"),
  },
  (t) => [index("source_keys_by_origin").on(t.organisationId, t.origin).where(sql`${t.removedAt} IS NULL`)],
);

/** The audit log: append-only, by triggers. */
export const auditEntries = sqliteTable(
  "audit_entries",
  {
    id: text("id").primaryKey(),
    organisationId: organisationColumn(),
    actorKind: text("actor_kind", { enum: ADMINISTRATOR_KINDS }).notNull(),
    actorId: text("actor_id"),
    action: text("action", { enum: AUDIT_ACTIONS }).notNull(),
    subject: text("subject").notNull(),
    before: json<object | null>("before"),
    after: json<object | null>("after"),
    recordedAt: int("recorded_at").notNull(),
  },
  (t) => [
    index("audit_entries_by_organisation").on(t.organisationId, t.id),
    check("audit_entries_actor", sql`(${t.actorKind} = 'machine') = (${t.actorId} IS NULL)`),
  ],
);

export const agents = sqliteTable(
  "agents",
  {
    position: commitPosition(),
    id: text("id").notNull().unique(),
    organisationId: organisationColumn(),
    mode: modeColumn(),
    name: text("name").notNull(),
    identity: text("identity").notNull(),
    status: text("status", { enum: AGENT_STATUSES }).notNull(),
    failureBudget: int("failure_budget").notNull(),
    failureCount: int("failure_count").notNull(),
    mustBeNamed: bool("must_be_named").notNull(),
    createdAt: int("created_at").notNull(),
    digest: digest("digest"),
  },
  (t) => [
    index("agents_by_organisation").on(t.organisationId, t.mode, t.id),
    check("agents_mode", oneOf(t.mode, MODES)),
    check("agents_status", oneOf(t.status, AGENT_STATUSES)),
    check("agents_failures", sql`${t.failureBudget} > 0 AND ${t.failureCount} >= 0`),
  ],
);

export const apiKeys = sqliteTable(
  "api_keys",
  {
    id: text("id").primaryKey(),
    organisationId: organisationColumn(),
    agentId: text("agent_id")
      .notNull()
      .references(() => agents.id),
    mode: modeColumn(),
    secretHash: text("secret_hash").notNull(),
    lastFour: text("last_four").notNull(),
    createdAt: int("created_at").notNull(),
    expiresAt: int("expires_at"),
    lastUsedAt: int("last_used_at"),
    revokedAt: int("revoked_at"),
  },
  (t) => [
    uniqueIndex("api_keys_by_hash").on(t.secretHash),
    index("api_keys_by_organisation").on(t.organisationId, t.mode, t.id),
    index("api_keys_by_agent").on(t.agentId, t.id),
    check("api_keys_mode", oneOf(t.mode, MODES)),
  ],
);

export const spendSessions = sqliteTable(
  "spend_sessions",
  {
    position: commitPosition(),
    id: text("id").notNull().unique(),
    agentId: text("agent_id")
      .notNull()
      .references(() => agents.id),
    amountCeiling: amount("amount_ceiling").notNull(),
    amountSpent: amount("amount_spent").notNull(),
    amountHeld: amount("amount_held").notNull().default(sql`0`),
    heldAt: int("held_at"),
    perWarrantMax: amount("per_warrant_max"),
    hourlyMax: amount("hourly_max"),
    dailyMax: amount("daily_max"),
    payees: json<readonly string[] | null>("payees"),
    sourceOrigins: json<readonly string[] | null>("source_origins"),
    warrantLimit: int("warrant_limit"),
    warrantCount: int("warrant_count").notNull(),
    failureBudget: int("failure_budget").notNull(),
    failureCount: int("failure_count").notNull(),
    expiresAt: int("expires_at").notNull(),
    revokedAt: int("revoked_at"),
    createdAt: int("created_at").notNull(),
    digest: digest("digest"),
  },
  (t) => [
    index("spend_sessions_by_agent").on(t.agentId),
    check("spend_sessions_spent", sql`${t.amountSpent} BETWEEN 0 AND ${t.amountCeiling}`),
    check("spend_sessions_count", sql`${t.warrantLimit} IS NULL OR ${t.warrantCount} <= ${t.warrantLimit}`),
  ],
);

/**
 * The running totals of sessions that have windows, at the times at which they held something. What was held
 * in a window is the difference of two of them.
 */
export const sessionTotals = sqliteTable(
  "session_totals",
  {
    session: int("session").notNull(),
    heldAt: int("held_at").notNull(),
    total: amount("total").notNull(),
    digest: digest("digest"),
  },
  (t) => [
    primaryKey({ columns: [t.session, t.heldAt] }),
    check("session_totals_total", sql`${t.total} >= 0 AND ${isInteger(t.total)}`),
  ],
);

export const policies = sqliteTable(
  "policies",
  {
    position: commitPosition(),
    id: text("id").notNull().unique(),
    organisationId: organisationColumn(),
    agentId: text("agent_id").references(() => agents.id),
    name: text("name").notNull(),
    version: int("version").notNull(),
    rules: json<PolicyRules>("rules").notNull(),
    rulesHash: text("rules_hash").notNull(),
    createdAt: int("created_at").notNull(),
    digest: digest("digest"),
  },
  (t) => [
    uniqueIndex("policies_of_organisation")
      .on(t.organisationId, t.name, t.version)
      .where(sql`${t.agentId} IS NULL`),
    uniqueIndex("policies_of_agent").on(t.agentId, t.name, t.version).where(sql`${t.agentId} IS NOT NULL`),
    index("policies_by_agent").on(t.organisationId, t.agentId),
    // Those of the organisation have no agent, and no null is greater than another.
    index("policies_by_name").on(
      t.organisationId,
      t.name,
      sql`CASE WHEN ${t.agentId} IS NULL THEN '' ELSE ${t.agentId} END`,
    ),
  ],
);

export const verifiers = sqliteTable(
  "verifiers",
  {
    position: commitPosition(),
    id: text("id").notNull().unique(),
    organisationId: organisationColumn(),
    type: text("type").$type<ClauseKind>().notNull(),
    name: text("name").notNull(),
    config: json<Record<string, unknown>>("config").notNull(),
    createdAt: int("created_at").notNull(),
    digest: digest("digest"),
  },
  // No CHECK of its type: with each new kind of clause the table would have to be rebuilt.
  (t) => [index("verifiers_by_organisation").on(t.organisationId, t.id)],
);

export const schemas = sqliteTable(
  "schemas",
  {
    id: text("id").primaryKey(),
    organisationId: organisationColumn(),
    name: text("name").notNull(),
    schema: json<JsonSchema>("schema").notNull(),
    schemaHash: text("schema_hash").notNull(),
    createdAt: int("created_at").notNull(),
    digest: digest("digest"),
  },
  (t) => [uniqueIndex("schemas_by_name").on(t.organisationId, t.name)],
);
