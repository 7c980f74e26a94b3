import { and, asc, count, desc, eq, gt, inArray, lt, lte, min, type SQL, sql } from "drizzle-orm";
import type { Escalation } from "../../../core/escalation.ts";
import type { State } from "../../../core/warrant.ts";
import type { WarrantFilter } from "../../reader.ts";
import type { Scope } from "../../scope.ts";
import type { Tables } from "../open.ts";
import { traceEntryOf } from "../rows.ts";
import { checks, escalations, trace, warrantCounts, warrants } from "../tables/ledger.ts";
import type { SqliteReader } from "./sqlite-reader.ts";

const { placeholder } = sql;

const matching = ({ organisationId, mode }: Scope, { state, agentId }: WarrantFilter): SQL | undefined =>
  and(
    eq(warrants.organisationId, organisationId),
    eq(warrants.mode, mode),
    state === undefined ? undefined : eq(warrants.state, state),
    agentId === undefined ? undefined : eq(warrants.agentId, agentId),
  );

export function createWarrantsReader(tables: Tables): SqliteReader["warrants"] {
  const byId = tables
    .select()
    .from(warrants)
    .where(eq(warrants.id, placeholder("id")))
    .prepare();
  const find = (id: string) => {
    const row = byId.get({ id });
    return row ?? null;
  };
  return {
    ...createInstanceReads(tables),
    find,
    get: ({ organisationId, mode }, id) => {
      const warrant = find(id);
      return warrant?.organisationId === organisationId && warrant.mode === mode ? warrant : null;
    },
    byDeadline: (scope, filter, offset, limit) => {
      // The ids come from an index alone; the rows are read for one page only, however deep it lies.
      const page = tables
        .select({ id: warrants.id })
        .from(warrants)
        .where(matching(scope, filter))
        .orderBy(asc(warrants.deadline), asc(warrants.id))
        .limit(limit)
        .offset(offset);
      return tables
        .select()
        .from(warrants)
        .where(inArray(warrants.id, page))
        .orderBy(asc(warrants.deadline), asc(warrants.id))
        .all();
    },
    byCreation: (scope, filter, { olderThan, newerThan }, limit) => {
      const rows = tables
        .select()
        .from(warrants)
        .where(
          and(
            matching(scope, filter),
            olderThan === undefined ? undefined : lt(warrants.id, olderThan),
            newerThan === undefined ? undefined : gt(warrants.id, newerThan),
          ),
        )
        .orderBy(newerThan === undefined ? desc(warrants.id) : asc(warrants.id))
        .limit(limit)
        .all();
      return newerThan === undefined ? rows : rows.reverse();
    },
    ofAgent: (agentId, state, limit) =>
      tables
        .select()
        .from(warrants)
        .where(and(eq(warrants.agentId, agentId), eq(warrants.state, state)))
        .orderBy(asc(warrants.deadline), asc(warrants.id))
        .limit(limit)
        .all(),
  };
}

/** Those of the warrants of all organisations, for the jobs and the operator. */
function createInstanceReads(
  tables: Tables,
): Pick<SqliteReader["warrants"], "overdue" | "overdueCount" | "countsByState" | "verifying"> {
  return {
    overdue: (now, limit) =>
      tables
        .select()
        .from(warrants)
        .where(and(eq(warrants.state, sql`'held'`), lte(warrants.deadline, now)))
        .orderBy(asc(warrants.deadline))
        .limit(limit)
        .all(),
    overdueCount: (now) =>
      tables
        .select({ count: count() })
        .from(warrants)
        .where(and(eq(warrants.state, sql`'held'`), lte(warrants.deadline, now)))
        .get()?.count ?? 0,
    countsByState: () =>
      Object.fromEntries(
        tables
          .select({ state: warrantCounts.state, count: sql<bigint>`sum(${warrantCounts.count})` })
          .from(warrantCounts)
          .groupBy(warrantCounts.state)
          .all()
          .map(({ state, count }) => [state, Number(count)]),
      ) as Partial<Record<State, number>>,
    verifying: (afterId, limit) =>
      tables
        .select()
        .from(warrants)
        .where(and(eq(warrants.state, sql`'verifying'`), gt(warrants.id, afterId)))
        .orderBy(asc(warrants.id))
        .limit(limit)
        .all(),
  };
}

export function createTraceReader(tables: Tables): SqliteReader["trace"] {
  const ofWarrant = tables
    .select()
    .from(trace)
    .where(eq(trace.warrantId, placeholder("warrantId")))
    .orderBy(asc(trace.sequence))
    .prepare();
  return { of: (warrantId) => ofWarrant.all({ warrantId }).map(traceEntryOf) };
}

export function createChecksReader(tables: Tables): SqliteReader["checks"] {
  const ofWarrant = tables
    .select()
    .from(checks)
    .where(eq(checks.warrantId, placeholder("warrantId")))
    .orderBy(asc(checks.id))
    .prepare();
  return { of: (warrantId) => ofWarrant.all({ warrantId }) };
}

export function createEscalationsReader(tables: Tables): SqliteReader["escalations"] {
  const inStatus = ({ organisationId, mode }: Scope, status: Escalation["status"], limit: number) =>
    tables
      .select()
      .from(escalations)
      .where(
        and(
          eq(escalations.organisationId, organisationId),
          eq(escalations.mode, mode),
          eq(escalations.status, status),
        ),
      )
      // Who has waited longest comes first; of what is decided, the latest.
      .orderBy(status === "resolved" ? desc(escalations.id) : asc(escalations.id))
      .limit(limit)
      .all();
  const waits = sql`${escalations.status} <> 'resolved'`;
  return {
    waiting: (before, after, limit) =>
      tables
        .select()
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
    waitingCount: () =>
      tables
        .select({ count: count(), oldestAt: min(escalations.createdAt) })
        .from(escalations)
        .where(waits)
        .get() ?? { count: 0, oldestAt: null },
    list: (scope, limit) => {
      const rows: Escalation[] = [];
      for (const status of ["open", "disputed", "resolved"] as const) {
        if (rows.length < limit) rows.push(...inStatus(scope, status, limit - rows.length));
      }
      return rows;
    },
  };
}
