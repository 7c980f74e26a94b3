import {
  and,
  asc,
  count,
  desc,
  eq,
  gt,
  gte,
  inArray,
  isNotNull,
  lte,
  max,
  min,
  notExists,
  or,
  placeholder,
  sql,
} from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import type { Tables } from "../open.ts";
import { deliveries, webhooks } from "../tables/webhooks.ts";
import type { SqliteReader } from "./sqlite-reader.ts";

/** The statements that the delivering job runs many times a second are prepared. */
export function createWebhooksReader(tables: Tables): SqliteReader["webhooks"] {
  const withWork = tables
    .select()
    .from(webhooks)
    .where(
      sql`EXISTS (SELECT 1 FROM ${deliveries} WHERE ${deliveries.webhookId} = ${webhooks.id} AND ${deliveries.nextAttemptAt} <= ${placeholder("now")})`,
    )
    .orderBy(asc(webhooks.id))
    .prepare();
  return {
    get: (id) => tables.select().from(webhooks).where(eq(webhooks.id, id)).get() ?? null,
    list: ({ organisationId, mode }) =>
      tables
        .select()
        .from(webhooks)
        .where(and(eq(webhooks.organisationId, organisationId), eq(webhooks.mode, mode)))
        .orderBy(asc(webhooks.id))
        .all(),
    enabled: () =>
      tables.select().from(webhooks).where(eq(webhooks.disabled, false)).orderBy(asc(webhooks.id)).all(),
    withWork: (now) => withWork.all({ now }),
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

export function createDeliveriesReader(tables: Tables): SqliteReader["deliveries"] {
  const rows = () => tables.select().from(deliveries);
  // Scheduled and claimed deliveries are counted apart, each by its own index. No delivery is both.
  const countWhere = (column: typeof deliveries.nextAttemptAt | typeof deliveries.claimedUntil) =>
    tables.select({ count: count() }).from(deliveries).where(isNotNull(column)).prepare();
  const scheduled = countWhere(deliveries.nextAttemptAt);
  const claimed = countWhere(deliveries.claimedUntil);
  const due = rows()
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
  const timed = (
    column: typeof deliveries.nextAttemptAt | typeof deliveries.claimedUntil,
    compare: typeof gt,
  ) =>
    rows()
      .where(and(isNotNull(column), compare(column, placeholder("time"))))
      .limit(placeholder("limit"))
      .prepare();
  const cutOff = timed(deliveries.claimedUntil, lte);
  const claimedAfter = timed(deliveries.claimedUntil, gt);
  const scheduledAfter = timed(deliveries.nextAttemptAt, gt);
  const next = tables
    .select({ next: min(deliveries.nextAttemptAt) })
    .from(deliveries)
    .where(isNotNull(deliveries.nextAttemptAt))
    .prepare();
  return {
    get: (id) => rows().where(eq(deliveries.id, id)).get() ?? null,
    list: ({ organisationId, mode }, limit, webhookId) =>
      rows()
        .where(
          and(
            eq(deliveries.organisationId, organisationId),
            eq(deliveries.mode, mode),
            webhookId === undefined ? undefined : eq(deliveries.webhookId, webhookId),
          ),
        )
        .orderBy(desc(deliveries.createdAt), desc(deliveries.id))
        .limit(limit)
        .all(),
    due: (webhookId, now, limit) => due.all({ webhookId, now, limit }),
    cutOff: (time, limit) => cutOff.all({ time, limit }),
    beyond: (claimedUntil, nextAttemptAt, limit) => [
      ...claimedAfter.all({ time: claimedUntil, limit }),
      ...scheduledAfter.all({ time: nextAttemptAt, limit }),
    ],
    exhaustedSince(webhookId, since, limit) {
      // The newest delivery of each event since then, in one pass. A retry of an exhausted delivery is always
      // newer than that.
      const newest = tables
        .select({ id: max(deliveries.id) })
        .from(deliveries)
        .where(and(gte(deliveries.createdAt, since), eq(deliveries.webhookId, webhookId)))
        .groupBy(deliveries.eventId)
        .having(sql`sum(${deliveries.status} = 'delivered') = 0`);
      return rows()
        .where(and(inArray(deliveries.id, newest), eq(deliveries.status, "exhausted")))
        .orderBy(asc(deliveries.createdAt), asc(deliveries.id))
        .limit(limit)
        .all();
    },
    waiting: () => (scheduled.get()?.count ?? 0) + (claimed.get()?.count ?? 0),
    nextAttemptAt: () => next.get()?.next ?? null,
  };
}
