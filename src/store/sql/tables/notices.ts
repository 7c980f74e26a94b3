import { sql } from "drizzle-orm";
import { check, index, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import {
  type Channel,
  NOTICE_ATTEMPTS_MAX,
  NOTICE_STATUSES,
  type NoticeAbout,
  UNENDED_NOTICE_STATUSES,
} from "../../../core/notice.ts";
import { MODES } from "../../../core/roles.ts";
import { bool, int, json, literals, modeColumn, oneOf } from "../columns.ts";
import { organisationColumn, userColumn } from "./directory.ts";

/** What people are told without asking, and how they want to be told. No money and no verdict follows from it. */

/** The escalations of which people are still to hear. */
export const plannedNotices = sqliteTable(
  "planned_notices",
  {
    id: text("id").primaryKey(),
    organisationId: organisationColumn(),
    mode: modeColumn(),
    made: int("made").notNull(),
    dueAt: int("due_at").notNull(),
    createdAt: int("created_at").notNull(),
  },
  (t) => [
    index("planned_notices_due").on(t.organisationId, t.mode, t.dueAt),
    index("planned_notices_next").on(t.dueAt),
    check("planned_notices_mode", oneOf(t.mode, MODES)),
  ],
);

export const notices = sqliteTable(
  "notices",
  {
    id: text("id").primaryKey(),
    organisationId: organisationColumn(),
    mode: modeColumn(),
    userId: userColumn(),
    // Without a CHECK: a channel that comes later would have the whole table rebuilt.
    channel: text("channel").$type<Channel>().notNull(),
    subject: text("subject").notNull(),
    about: json<NoticeAbout>("about").notNull(),
    encryptedLink: text("encrypted_link"),
    status: text("status", { enum: NOTICE_STATUSES }).notNull(),
    attempts: int("attempts").notNull(),
    answer: text("answer"),
    durationMs: int("duration_ms"),
    claimedUntil: int("claimed_until"),
    nextAttemptAt: int("next_attempt_at"),
    createdAt: int("created_at").notNull(),
  },
  (t) => [
    index("notices_due")
      .on(t.organisationId, t.mode, t.channel, t.nextAttemptAt)
      .where(sql`${t.nextAttemptAt} IS NOT NULL`),
    index("notices_next").on(t.nextAttemptAt).where(sql`${t.nextAttemptAt} IS NOT NULL`),
    index("notices_claimed").on(t.claimedUntil).where(sql`${t.claimedUntil} IS NOT NULL`),
    index("notices_by_subject").on(t.organisationId, t.subject, t.createdAt),
    index("notices_by_user").on(t.userId, t.createdAt),
    index("notices_by_creation").on(t.createdAt),
    check("notices_mode", oneOf(t.mode, MODES)),
    check("notices_attempts", sql`${t.attempts} BETWEEN 0 AND ${sql.raw(String(NOTICE_ATTEMPTS_MAX))}`),
    check(
      "notices_work",
      sql`(${t.status} IN (${sql.raw(literals(UNENDED_NOTICE_STATUSES))})) = ((${t.claimedUntil} IS NOT NULL) + (${t.nextAttemptAt} IS NOT NULL) = 1)`,
    ),
  ],
);

/** What a person chose. Where there is no row, they chose nothing. */
export const noticeSettings = sqliteTable("notice_settings", {
  userId: userColumn().primaryKey(),
  organisationId: organisationColumn(),
  email: bool("email").notNull(),
  // Whoever chose before there was this channel has it on.
  push: bool("push").notNull().default(true),
  messaging: bool("messaging").notNull().default(true),
  sandbox: bool("sandbox").notNull(),
  fromMinute: int("from_minute"),
  untilMinute: int("until_minute"),
  timeZone: text("time_zone").notNull(),
});

/** The browsers that a person has allowed to be notified, each with the address that its push service gave it (RFC 8030). */
export const pushSubscriptions = sqliteTable(
  "push_subscriptions",
  {
    id: text("id").primaryKey(),
    organisationId: organisationColumn(),
    userId: userColumn(),
    endpoint: text("endpoint").notNull(),
    p256dh: text("p256dh").notNull(),
    encryptedAuth: text("encrypted_auth").notNull(),
    name: text("name").notNull(),
    createdAt: int("created_at").notNull(),
    deliveredAt: int("delivered_at"),
  },
  (t) => [
    uniqueIndex("push_subscriptions_endpoint").on(t.endpoint),
    index("push_subscriptions_by_user").on(t.userId, t.createdAt),
  ],
);
