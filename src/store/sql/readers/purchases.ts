import { and, asc, count, desc, eq, gt, isNotNull, isNull, lt, lte, min, ne, or, sql } from "drizzle-orm";
import type { Connection } from "../database.ts";
import { fieldsOf, purchaseOf } from "../rows.ts";
import { selectRows } from "../select-rows.ts";
import { contents, purchases } from "../tables/purchases.ts";
import { timedSql } from "./reading.ts";
import type { SqlReader } from "./sql-reader.ts";

export function createPurchasesReader({
  tables,
  raw,
}: Connection): Pick<SqlReader, "purchases" | "contents"> {
  const rows = () => tables.select(fieldsOf(purchases)).from(purchases);
  const unfinished = selectRows(
    raw,
    fieldsOf(purchases),
    "WHERE phase <> 'ended' AND id > ? ORDER BY id LIMIT ?",
  );
  const withContent = (which: string, time: "created_at" | "ended_at", comparison: "<" | ">") =>
    selectRows(
      raw,
      fieldsOf(purchases),
      `WHERE content_bytes > 0 AND ${which} AND ${timedSql(time, comparison)}`,
    );
  const bought = withContent("warrant_id IS NOT NULL AND phase = 'ended'", "created_at", "<");
  const freeBefore = withContent("warrant_id IS NULL", "ended_at", "<");
  const freeAfter = withContent("warrant_id IS NULL", "ended_at", ">");
  return {
    purchases: {
      get(id) {
        const row = rows().where(eq(purchases.id, id)).get();
        return row ? purchaseOf(row) : null;
      },
      list: ({ organisationId, mode }, olderThan, limit) =>
        rows()
          .where(
            and(
              eq(purchases.organisationId, organisationId),
              eq(purchases.mode, mode),
              olderThan === null ? undefined : lt(purchases.id, olderThan),
            ),
          )
          .orderBy(desc(purchases.id))
          .limit(limit)
          .all()
          .map(purchaseOf),
      unfinished: (afterId, limit) => unfinished(afterId, limit).map(purchaseOf),
      toCheck: (now, latest, limit) =>
        rows()
          .where(
            and(
              isNotNull(purchases.nextCheckAt),
              or(lte(purchases.nextCheckAt, now), gt(purchases.nextCheckAt, latest)),
            ),
          )
          .orderBy(asc(purchases.nextCheckAt), sql`${purchases}.rowid`)
          .limit(limit)
          .all()
          .map(purchaseOf),
      withOldContent: (old, limit) =>
        [
          ...bought(old.boughtBefore, limit),
          ...freeBefore(old.freeBefore, limit),
          ...freeAfter(old.now, limit),
        ].map(purchaseOf),
      waiting: () => waitingPurchases(tables),
    },
    contents: {
      get: (hash) => tables.select().from(contents).where(eq(contents.hash, hash)).get()?.bytes ?? null,
      length: (hash) =>
        tables
          .select({ length: sql<number>`CAST(length(${contents.bytes}) AS BIGINT)`.mapWith(Number) })
          .from(contents)
          .where(eq(contents.hash, hash))
          .get()?.length ?? null,
    },
  };
}

/** What the purchases of the whole ledger wait for. */
function waitingPurchases(tables: Connection["tables"]): ReturnType<SqlReader["purchases"]["waiting"]> {
  const open = tables.select({ count: count() }).from(purchases).where(ne(purchases.phase, "ended")).get();
  const unknown = tables
    .select({ count: count(), next: min(purchases.nextCheckAt) })
    .from(purchases)
    .where(and(isNotNull(purchases.nextCheckAt), eq(purchases.known, "unknown")))
    .get();
  const contradicted = tables
    .select({ count: count() })
    .from(purchases)
    .where(
      and(
        isNotNull(purchases.chainSaid),
        ne(purchases.chainSaid, purchases.known),
        isNull(purchases.acknowledgedAt),
      ),
    )
    .get();
  return {
    unfinished: open?.count ?? 0,
    unknown: unknown?.count ?? 0,
    nextCheckAt: unknown?.next ?? null,
    contradicted: contradicted?.count ?? 0,
  };
}
