import { sql } from "drizzle-orm";
import { check, index, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { MODES } from "../../../core/roles.ts";
import { EVENT_TYPES, type EventType } from "../../../core/warrant.ts";
import {
  DELIVERY_ATTEMPTS_MAX,
  DELIVERY_STATUSES,
  type DeliveryStatus,
  ENDED_DELIVERY_STATUSES,
} from "../../../core/webhook.ts";
import { bool, int, json, literals, modeColumn, oneOf } from "../columns.ts";
import { organisationColumn } from "./directory.ts";

/** Who hears of events, and what is on its way to them. A trigger keeps a delivery in its endpoint's mode. */

export const webhooks = sqliteTable(
  "webhooks",
  {
    id: text("id").primaryKey(),
    organisationId: organisationColumn(),
    mode: modeColumn(),
    url: text("url").notNull(),
    events: json<readonly EventType[]>("events").notNull(),
    encryptedSecret: text("encrypted_secret").notNull(),
    disabled: bool("disabled").notNull(),
    createdAt: int("created_at").notNull(),
  },
  (t) => [
    index("webhooks_by_organisation").on(t.organisationId, t.mode, t.id),
    check("webhooks_mode", oneOf(t.mode, MODES)),
  ],
);

const ENDED: readonly DeliveryStatus[] = ENDED_DELIVERY_STATUSES;
const UNENDED_STATUSES = DELIVERY_STATUSES.filter((status) => !ENDED.includes(status));

export const deliveries = sqliteTable(
  "webhook_deliveries",
  {
    id: text("id").primaryKey(),
    webhookId: text("webhook_id")
      .notNull()
      .references(() => webhooks.id),
    organisationId: organisationColumn(),
    mode: modeColumn(),
    event: text("event", { enum: EVENT_TYPES }).notNull(),
    eventId: text("event_id").notNull(),
    warrantId: text("warrant_id"),
    sequence: int("sequence"),
    status: text("status", { enum: DELIVERY_STATUSES }).notNull(),
    attempts: int("attempts").notNull(),
    responseCode: int("response_code"),
    responseStart: text("response_start"),
    durationMs: int("duration_ms"),
    claimedUntil: int("claimed_until"),
    nextAttemptAt: int("next_attempt_at"),
    createdAt: int("created_at").notNull(),
  },
  (t) => [
    index("webhook_deliveries_by_organisation").on(t.organisationId, t.mode, t.createdAt),
    index("webhook_deliveries_due")
      .on(t.webhookId, t.nextAttemptAt)
      .where(sql`${t.nextAttemptAt} IS NOT NULL`),
    index("webhook_deliveries_next").on(t.nextAttemptAt).where(sql`${t.nextAttemptAt} IS NOT NULL`),
    index("webhook_deliveries_claimed").on(t.claimedUntil).where(sql`${t.claimedUntil} IS NOT NULL`),
    // Whether an earlier event of the warrant has had its first attempt.
    index("webhook_deliveries_first")
      .on(t.webhookId, t.warrantId, t.sequence)
      .where(sql`${t.attempts} < 2 AND (${t.nextAttemptAt} IS NOT NULL OR ${t.claimedUntil} IS NOT NULL)`),
    index("webhook_deliveries_by_creation").on(t.createdAt),
    check("webhook_deliveries_mode", oneOf(t.mode, MODES)),
    check(
      "webhook_deliveries_attempts",
      sql`${t.attempts} BETWEEN 0 AND ${sql.raw(String(DELIVERY_ATTEMPTS_MAX))}`,
    ),
    check("webhook_deliveries_of_an_entry", sql`(${t.warrantId} IS NULL) = (${t.sequence} IS NULL)`),
    check(
      "webhook_deliveries_work",
      sql`(${t.status} IN (${sql.raw(literals(UNENDED_STATUSES))})) = ((${t.claimedUntil} IS NOT NULL) + (${t.nextAttemptAt} IS NOT NULL) = 1)`,
    ),
    check(
      "webhook_deliveries_delivered",
      sql`${t.status} <> 'delivered' OR ${t.responseCode} BETWEEN 200 AND 299`,
    ),
  ],
);
