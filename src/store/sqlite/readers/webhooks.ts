import { and, asc, count, desc, eq, gt, gte, isNotNull, lte, min, notExists, or, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import type { Reader } from "../../store.ts";
import type { Tables } from "../open.ts";
import { deliveries, webhooks } from "../tables/webhooks.ts";

export function createWebhooksReader(tables: Tables): Reader["webhooks"] {
  return {
    get: (id) => tables.select().from(webhooks).where(eq(webhooks.id, id)).get() ?? null,
    list: ({ organisationId, mode }) =>
      tables
        .select()
        .from(webhooks)
        .where(and(eq(webhooks.organisationId, organisationId), eq(webhooks.mode, mode)))
        .orderBy(asc(webhooks.id))
        .all(),
    withWork: () =>
      tables
        .select()
        .from(webhooks)
        .where(
          sql`EXISTS (SELECT 1 FROM ${deliveries} WHERE ${deliveries.webhookId} = ${webhooks.id} AND ${deliveries.nextAttemptAt} IS NOT NULL)`,
        )
        .orderBy(asc(webhooks.id))
        .all(),
  };
}

const earlier = alias(deliveries, "earlier");

/** Of the same warrant, an earlier event whose first attempt has not ended. */
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
        // One whose first attempt has failed waits for its second and holds up nobody.
        or(eq(earlier.attempts, 0), isNotNull(earlier.claimedUntil)),
      ),
    );

export function createDeliveriesReader(tables: Tables): Reader["deliveries"] {
  const rows = () => tables.select().from(deliveries);
  const works = or(isNotNull(deliveries.nextAttemptAt), isNotNull(deliveries.claimedUntil));
  return {
    get: (id) => rows().where(eq(deliveries.id, id)).get() ?? null,
    list: ({ organisationId, mode }, limit) =>
      rows()
        .where(and(eq(deliveries.organisationId, organisationId), eq(deliveries.mode, mode)))
        .orderBy(desc(deliveries.createdAt), desc(deliveries.id))
        .limit(limit)
        .all(),
    due: (webhookId, now, limit) =>
      rows()
        .where(
          and(
            eq(deliveries.webhookId, webhookId),
            isNotNull(deliveries.nextAttemptAt),
            lte(deliveries.nextAttemptAt, now),
            or(gt(deliveries.attempts, 0), notExists(firstAttemptsBefore(tables))),
          ),
        )
        .orderBy(asc(deliveries.nextAttemptAt), asc(deliveries.id))
        .limit(limit)
        .all(),
    cutOff: (time, limit) =>
      rows()
        .where(and(isNotNull(deliveries.claimedUntil), lte(deliveries.claimedUntil, time)))
        .limit(limit)
        .all(),
    exhaustedSince(webhookId, since, limit) {
      const later = alias(deliveries, "later");
      return rows()
        .where(
          and(
            eq(deliveries.webhookId, webhookId),
            eq(deliveries.status, "exhausted"),
            gte(deliveries.createdAt, since),
            notExists(
              tables
                .select({ id: later.id })
                .from(later)
                .where(
                  and(
                    eq(later.webhookId, deliveries.webhookId),
                    eq(later.eventId, deliveries.eventId),
                    // Delivered after all, or a newer try under way or exhausted in its turn.
                    or(eq(later.status, "delivered"), gt(later.id, deliveries.id)),
                  ),
                ),
            ),
          ),
        )
        .orderBy(asc(deliveries.createdAt), asc(deliveries.id))
        .limit(limit)
        .all();
    },
    waiting: () => tables.select({ count: count() }).from(deliveries).where(works).get()?.count ?? 0,
    nextAttemptAt: () =>
      tables
        .select({ next: min(deliveries.nextAttemptAt) })
        .from(deliveries)
        .where(isNotNull(deliveries.nextAttemptAt))
        .get()?.next ?? null,
  };
}
