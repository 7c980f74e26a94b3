import {
  and,
  asc,
  count,
  desc,
  eq,
  getTableColumns,
  gt,
  gte,
  inArray,
  isNotNull,
  lt,
  lte,
  max,
  min,
  notExists,
  or,
  placeholder,
  type SQL,
  sql,
} from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import type { Scope } from "../../scope.ts";
import type { Connection, Tables } from "../database.ts";
import { lazily } from "../lazily.ts";
import { selectRows } from "../select-rows.ts";
import { deliveries, webhooks } from "../tables/webhooks.ts";
import { inNumbers, inTexts, partOf, timedSql } from "./reading.ts";
import type { SqlReader } from "./sql-reader.ts";

/** The statements that the delivering job runs many times a second are prepared. */
export function createWebhooksReader({ tables, raw }: Connection): SqlReader["webhooks"] {
  const withWork = lazily(() => {
    const statement = tables
      .select()
      .from(webhooks)
      .where(
        sql`EXISTS (SELECT 1 FROM ${deliveries} WHERE ${deliveries.webhookId} = ${webhooks.id} AND ${deliveries.nextAttemptAt} <= ${placeholder("now")})`,
      )
      .orderBy(asc(webhooks.id))
      .prepare();
    return (now: number) => statement.all({ now });
  });
  return {
    get: (id) => tables.select().from(webhooks).where(eq(webhooks.id, id)).get() ?? null,
    list({ organisationId, mode }, part) {
      const { bounds, limit } = partOf(webhooks.id, part);
      return tables
        .select()
        .from(webhooks)
        .where(and(eq(webhooks.organisationId, organisationId), eq(webhooks.mode, mode), bounds))
        .orderBy(asc(webhooks.id))
        .limit(limit)
        .all();
    },
    enabled: lazily(() => selectRows(raw, getTableColumns(webhooks), "WHERE disabled = 0 ORDER BY id")),
    withWork,
  };
}

const earlier = alias(deliveries, "earlier");

/** Finds an earlier event of the same warrant whose first attempt has not ended. */
const firstAttemptsBefore = (tables: Tables) =>
  tables
    .select({ id: earlier.id })
    .from(earlier)
    .where(
      and(
        eq(earlier.webhookId, deliveries.webhookId),
        eq(earlier.warrantId, deliveries.warrantId),
        sql`${earlier.sequence} < ${deliveries.sequence}`,
        sql`${earlier.attempts} < 2 AND (${earlier.nextAttemptAt} IS NOT NULL OR ${earlier.claimedUntil} IS NOT NULL)`,
        // After its first attempt has failed, an event no longer delays later ones.
        or(eq(earlier.attempts, 0), isNotNull(earlier.claimedUntil)),
      ),
    );

/** The deliveries that are due at a time, or whose times lie too far ahead of it. */
function timedReads({ tables, raw }: Connection) {
  const rows = () => tables.select().from(deliveries);
  const due = lazily(() => {
    const statement = rows()
      .where(
        and(
          eq(deliveries.webhookId, placeholder("webhookId")),
          isNotNull(deliveries.nextAttemptAt),
          lte(deliveries.nextAttemptAt, placeholder("now")),
          or(gt(deliveries.attempts, 0), notExists(firstAttemptsBefore(tables))),
        ),
      )
      .orderBy(asc(deliveries.nextAttemptAt), asc(deliveries.id))
      .limit(placeholder("limit"))
      .prepare();
    return (webhookId: string, now: number, limit: number) => statement.all({ webhookId, now, limit });
  });
  const timed = (column: string, comparison: "<=" | ">") =>
    lazily(() => selectRows(raw, getTableColumns(deliveries), `WHERE ${timedSql(column, comparison)}`));
  return {
    due,
    cutOff: timed("claimed_until", "<="),
    claimedAfter: timed("claimed_until", ">"),
    scheduledAfter: timed("next_attempt_at", ">"),
  };
}

/** Lists of deliveries, newest first. */
function newestReads({
  tables,
}: Pick<Connection, "tables">): Pick<SqlReader["deliveries"], "list" | "olderThan" | "ofMoves"> {
  const newest = (
    { organisationId, mode }: Scope,
    limit: number,
    ...conditions: readonly (SQL | undefined)[]
  ) =>
    tables
      .select()
      .from(deliveries)
      .where(and(eq(deliveries.organisationId, organisationId), eq(deliveries.mode, mode), ...conditions))
      .orderBy(desc(deliveries.createdAt), desc(deliveries.id))
      .limit(limit)
      .all();
  return {
    list: (scope, limit, webhookId) =>
      newest(scope, limit, webhookId === undefined ? undefined : eq(deliveries.webhookId, webhookId)),
    olderThan: (scope, last, limit) =>
      newest(
        scope,
        limit,
        ...(last === null
          ? []
          : [
              lte(deliveries.createdAt, last.createdAt),
              or(lt(deliveries.createdAt, last.createdAt), lt(deliveries.id, last.id)),
            ]),
      ),
    ofMoves: (scope, moves, limit) =>
      newest(
        scope,
        limit,
        // A delivery is made in the commit of its move.
        inNumbers(
          deliveries.createdAt,
          moves.map(({ recordedAt }) => recordedAt),
        ),
        inTexts(
          deliveries.warrantId,
          moves.map(({ warrantId }) => warrantId),
        ),
      ),
  };
}

export function createDeliveriesReader(connection: Connection): SqlReader["deliveries"] {
  const { tables } = connection;
  const rows = () => tables.select().from(deliveries);
  // Scheduled and claimed deliveries are counted apart, each by its own index. No delivery is both.
  const countWhere = (column: typeof deliveries.nextAttemptAt | typeof deliveries.claimedUntil) =>
    lazily(() => {
      const statement = tables.select({ count: count() }).from(deliveries).where(isNotNull(column)).prepare();
      return () => statement.get()?.count ?? 0;
    });
  const scheduled = countWhere(deliveries.nextAttemptAt);
  const claimed = countWhere(deliveries.claimedUntil);
  const { due, cutOff, claimedAfter, scheduledAfter } = timedReads(connection);
  const nextAttemptAt = lazily(() => {
    const statement = tables
      .select({ next: min(deliveries.nextAttemptAt) })
      .from(deliveries)
      .where(isNotNull(deliveries.nextAttemptAt))
      .prepare();
    return () => statement.get()?.next ?? null;
  });
  return {
    get: (id) => rows().where(eq(deliveries.id, id)).get() ?? null,
    ...newestReads(connection),
    due,
    cutOff,
    beyond: (claimedUntil, nextAt, limit) => [
      ...claimedAfter(claimedUntil, limit),
      ...scheduledAfter(nextAt, limit),
    ],
    exhaustedSince(webhookId, since, limit) {
      // One delivery of each event since then of which none was delivered and none is under way, in one pass.
      // All of an event say the same, so it does not matter which one is sent again.
      const lost = tables
        .select({ id: max(deliveries.id) })
        .from(deliveries)
        .where(and(gte(deliveries.createdAt, since), eq(deliveries.webhookId, webhookId)))
        .groupBy(deliveries.eventId)
        .having(sql`count(*) FILTER (WHERE ${deliveries.status} <> 'exhausted') = 0`);
      return rows()
        .where(inArray(deliveries.id, lost))
        .orderBy(asc(deliveries.createdAt), asc(deliveries.id))
        .limit(limit)
        .all();
    },
    waiting: () => scheduled() + claimed(),
    nextAttemptAt,
  };
}
