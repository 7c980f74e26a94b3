import { and, asc, desc, eq, gt, lt, sql } from "drizzle-orm";
import { ESCALATION_STATUSES, type Escalation } from "../../../core/escalation.ts";
import type { Scope } from "../../scope.ts";
import type { Tables } from "../database.ts";
import { finding, keyed } from "../find-by-key.ts";
import { fieldsOf } from "../rows.ts";
import { escalations } from "../tables/ledger.ts";
import type { SqlReader } from "./sql-reader.ts";

export function createEscalationsReader(tables: Tables): SqlReader["escalations"] {
  const inStatus = (
    { organisationId, mode }: Scope,
    status: Escalation["status"],
    limit: number,
    after: string | null,
  ) =>
    tables
      .select()
      .from(escalations)
      .where(
        and(
          eq(escalations.organisationId, organisationId),
          eq(escalations.mode, mode),
          eq(escalations.status, status),
          after === null
            ? undefined
            : status === "resolved"
              ? lt(escalations.id, after)
              : gt(escalations.id, after),
        ),
      )
      // Of escalations that wait, the longest waiting comes first; of resolved ones, the latest.
      .orderBy(status === "resolved" ? desc(escalations.id) : asc(escalations.id))
      .limit(limit)
      .all();
  const byId = finding(() =>
    tables.select(fieldsOf(escalations)).from(escalations).where(keyed(escalations.id)).prepare(),
  );
  const waits = sql`${escalations.status} <> 'resolved'`;
  return {
    get: byId,
    waitingOf: (warrantId) =>
      tables
        .select(fieldsOf(escalations))
        .from(escalations)
        .where(and(eq(escalations.warrantId, warrantId), waits))
        .get() ?? null,
    waiting: (before, after, limit) =>
      tables
        .select(fieldsOf(escalations))
        .from(escalations)
        .where(
          and(
            waits,
            lt(escalations.createdAt, before),
            after === null
              ? undefined
              : sql`(${escalations.createdAt}, ${escalations.id}) > (${after.createdAt}, ${after.id})`,
          ),
        )
        .orderBy(asc(escalations.createdAt), asc(escalations.id))
        .limit(limit)
        .all(),
    oldestWaitingAt: () =>
      tables
        .select({ createdAt: escalations.createdAt })
        .from(escalations)
        .where(waits)
        .orderBy(asc(escalations.createdAt), asc(escalations.id))
        .limit(1)
        .get()?.createdAt ?? null,
    list: (scope, limit, after = null) => {
      const rows: Escalation[] = [];
      for (const status of ESCALATION_STATUSES.slice(after ? ESCALATION_STATUSES.indexOf(after.status) : 0)) {
        const last = after?.status === status ? after.id : null;
        if (rows.length < limit) rows.push(...inStatus(scope, status, limit - rows.length, last));
      }
      return rows;
    },
  };
}
