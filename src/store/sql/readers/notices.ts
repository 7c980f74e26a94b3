import { and, asc, count, desc, eq, getTableColumns, isNotNull, lte, sql } from "drizzle-orm";
import { CHANNELS } from "../../../core/notice.ts";
import type { Mode } from "../../../core/roles.ts";
import type { NoticeQueue } from "../../deliveries-reader.ts";
import type { Scope } from "../../scope.ts";
import type { Connection, SqlDatabase } from "../database.ts";
import { finding, keyed } from "../find-by-key.ts";
import { lazily } from "../lazily.ts";
import { selectRows } from "../select-rows.ts";
import { escalations } from "../tables/ledger.ts";
import { noticeSettings, notices, plannedNotices, pushSubscriptions } from "../tables/notices.ts";
import { timedSql } from "./reading.ts";
import type { SqlReader } from "./sql-reader.ts";

const plansDue = ({ organisationId, mode }: Scope, now: number) =>
  and(
    eq(plannedNotices.organisationId, organisationId),
    eq(plannedNotices.mode, mode),
    lte(plannedNotices.dueAt, now),
  );

const LIVE_FIRST = ["live", "sandbox"] as const satisfies readonly Mode[];

/** A table of texts of the code's own in `column1`, with their order in `column2`. */
const listed = (texts: readonly string[]): string =>
  `(VALUES ${texts.map((text, at) => `('${text}', ${at})`).join(", ")})`;

// The scopes one after the other, each found by the index: it costs as much as there are scopes, not as there are rows.
const scopesToPlanIn = (raw: SqlDatabase) =>
  lazily(() => {
    const statement = raw.prepare<Scope, [bigint]>(
      `SELECT organisations.id AS "organisationId", modes.column1 AS mode
       FROM ${listed(LIVE_FIRST)} AS modes CROSS JOIN organisations
       WHERE EXISTS (SELECT 1 FROM planned_notices
                     WHERE organisation_id = organisations.id AND mode = modes.column1 AND due_at <= ?)
       ORDER BY modes.column2, organisations.id`,
    );
    return (now: number) => statement.all(BigInt(now));
  });

/** The same of queues. */
const queuesToSendIn = (raw: SqlDatabase) =>
  lazily(() => {
    const statement = raw.prepare<NoticeQueue, [bigint]>(
      `SELECT organisations.id AS "organisationId", modes.column1 AS mode, channels.column1 AS channel
       FROM ${listed(LIVE_FIRST)} AS modes CROSS JOIN organisations CROSS JOIN ${listed(CHANNELS)} AS channels
       WHERE EXISTS (SELECT 1 FROM notices
                     WHERE organisation_id = organisations.id AND mode = modes.column1 AND channel = channels.column1
                       AND next_attempt_at IS NOT NULL AND next_attempt_at <= ?)
       ORDER BY modes.column2, organisations.id, channels.column2`,
    );
    return (now: number) => statement.all(BigInt(now));
  });

export function createNoticesReader({ tables, raw }: Connection): SqlReader["notices"] {
  const timed = (column: string, comparison: "<=" | ">") =>
    lazily(() => selectRows(raw, getTableColumns(notices), `WHERE ${timedSql(column, comparison)}`));
  const first = (table: string, column: string) =>
    lazily(() => {
      const statement = raw.prepare<{ at: bigint }, []>(
        `SELECT ${column} AS at FROM ${table} WHERE ${column} IS NOT NULL ORDER BY ${column} LIMIT 1`,
      );
      return () => {
        const at = statement.get()?.at;
        return at === undefined ? null : Number(at);
      };
    });
  const claimedAfter = timed("claimed_until", ">");
  const scheduledAfter = timed("next_attempt_at", ">");
  return {
    get: finding(() => tables.select().from(notices).where(keyed(notices.id)).prepare()),
    settingsOf: (userId) =>
      tables.select().from(noticeSettings).where(eq(noticeSettings.userId, userId)).get() ?? null,
    nextPlanAt: first("planned_notices", "due_at"),
    scopesToPlan: scopesToPlanIn(raw),
    plannedCount: (scope, now) =>
      tables.select({ count: count() }).from(plannedNotices).where(plansDue(scope, now)).get()?.count ?? 0,
    planned: (scope, now, limit) =>
      tables
        .select({
          plan: getTableColumns(plannedNotices),
          status: escalations.status,
          raisedBy: escalations.raisedBy,
        })
        .from(plannedNotices)
        .leftJoin(escalations, eq(escalations.id, plannedNotices.id))
        .where(plansDue(scope, now))
        // By the index alone: with the id, every read would sort all that are due.
        .orderBy(asc(plannedNotices.dueAt), sql`${plannedNotices}.rowid`)
        .limit(limit)
        .all(),
    nextAttemptAt: first("notices", "next_attempt_at"),
    queuesToSend: queuesToSendIn(raw),
    due: ({ organisationId, mode, channel }, now, limit) =>
      tables
        .select()
        .from(notices)
        .where(
          and(
            eq(notices.organisationId, organisationId),
            eq(notices.mode, mode),
            eq(notices.channel, channel),
            isNotNull(notices.nextAttemptAt),
            lte(notices.nextAttemptAt, now),
          ),
        )
        .orderBy(asc(notices.nextAttemptAt), asc(notices.id))
        .limit(limit)
        .all(),
    cutOff: timed("claimed_until", "<="),
    beyond: (claimedUntil, nextAt, limit) => [
      ...claimedAfter(claimedUntil, limit),
      ...scheduledAfter(nextAt, limit),
    ],
    ofUser: (userId, limit) =>
      tables
        .select()
        .from(notices)
        .where(eq(notices.userId, userId))
        .orderBy(desc(notices.createdAt), desc(notices.id))
        .limit(limit)
        .all(),
    pushSubscriptionsOf: (userId) =>
      tables
        .select()
        .from(pushSubscriptions)
        .where(eq(pushSubscriptions.userId, userId))
        .orderBy(asc(pushSubscriptions.createdAt), asc(pushSubscriptions.id))
        .all(),
  };
}
