import { and, asc, desc, eq, sql } from "drizzle-orm";
import { entriesOf, entryAt, type TraceEntry } from "../../../core/trace.ts";
import { STATES, type State, type Warrant } from "../../../core/warrant.ts";
import type { WarrantFilter } from "../../reader.ts";
import type { Scope } from "../../scope.ts";
import type { Connection, SqlDatabase, SqlStatement, SqlValue, Tables } from "../database.ts";
import { finding, keyed } from "../find-by-key.ts";
import { lazily } from "../lazily.ts";
import type { Names } from "../names.ts";
import { checkOf, traceStepOf, withoutDigest } from "../rows.ts";
import { checks, trace, warrantCounts, warrants } from "../tables/ledger.ts";
import { type StoredWarrant, warrantOf } from "../warrant-rows.ts";
import type { SqlReader } from "./sql-reader.ts";

const { placeholder } = sql;

/** Whose warrants: those of a scope, or those of an agent, which has one scope. Given by position. */
type Whose = { readonly column: "agent" | "scope"; readonly position: bigint };

const POSITION_MAX = 2n ** 63n - 1n;

const ORDERS = {
  byDeadline: { columns: "position, deadline", order: "deadline, position" },
  newestFirst: { columns: "position", order: "position DESC" },
  oldestFirst: { columns: "position", order: "position" },
} as const;

/** When a held warrant expires: the expression of the index `warrants_overdue`. */
const EXPIRES_AT = "CASE WHEN grace_until IS NULL THEN deadline ELSE grace_until END";

/**
 * The SQL for the positions of a page of warrants, from an index alone. Every index begins with the state. So
 * a list of all states is nine lists, which SQLite merges only as far as the page needs.
 */
function pageSql(
  { column }: Whose,
  states: readonly State[],
  order: keyof typeof ORDERS,
  bounds: string,
): string {
  const { columns, order: orderBy } = ORDERS[order];
  const ofState = (state: State) =>
    `SELECT ${columns} FROM warrants WHERE ${column} = ?1 AND state = '${state}' ${bounds}`;
  return `${states.map(ofState).join(" UNION ALL ")} ORDER BY ${orderBy} LIMIT ?2 OFFSET ?3`;
}

/**
 * The SQL for the positions of an agent's warrants, soonest deadline first: those that name it, and those that its key
 * opened without naming it. The index of the latter has two states only, so that a settled warrant costs nothing there. A few
 * that are frozen have a grace, and expire later than at their deadline.
 */
function ofAgentSql(state: "held" | "frozen"): string {
  const which = (condition: string) =>
    `SELECT position, deadline FROM warrants WHERE ${condition} AND state = '${state}' AND deadline > ?2`;
  const inGrace =
    "SELECT position, deadline FROM warrants INDEXED BY warrants_frozen_in_grace WHERE state = 'frozen' AND grace_until > ?2 AND deadline <= ?2 AND ?1 IN (agent, opened_by_agent)";
  const all = [
    which("agent = ?1"),
    which("opened_by_agent = ?1 AND opened_by_agent IS DISTINCT FROM agent"),
    ...(state === "frozen" ? [inGrace] : []),
  ];
  return `${all.join(" UNION ALL ")} ORDER BY deadline, position LIMIT ?3`;
}

export function createWarrantsReader({ tables, raw }: Connection, names: Names): SqlReader["warrants"] {
  const byId = raw.prepare<StoredWarrant, [string]>("SELECT * FROM warrants WHERE id = ?");
  const scopeOf = raw.prepare<{ position: bigint }, [string, string]>(
    "SELECT position FROM scopes WHERE organisation_id = ? AND mode = ?",
  );
  const agentOf = raw.prepare<{ position: bigint }, [string, string, string]>(
    "SELECT position FROM agents WHERE id = ? AND organisation_id = ? AND mode = ?",
  );
  const agentById = raw.prepare<{ position: bigint }, [string]>("SELECT position FROM agents WHERE id = ?");
  const positionOf = raw.prepare<{ position: bigint }, [string]>(
    "SELECT position FROM warrants WHERE id = ?",
  );

  const readRows = createReadRows(raw, names);
  const find = (id: string) => {
    const row = byId.get(id);
    return row === null ? null : warrantOf(row, names);
  };

  /** Null where no warrant can match. */
  function whose({ organisationId, mode }: Scope, { agentId }: WarrantFilter): Whose | null {
    const row =
      agentId === undefined ? scopeOf.get(organisationId, mode) : agentOf.get(agentId, organisationId, mode);
    return row && { column: agentId === undefined ? "scope" : "agent", position: row.position };
  }

  /** Reads a page: first its positions from an index, then its rows. */
  function page(
    of: Whose | null,
    { state }: WarrantFilter,
    order: keyof typeof ORDERS,
    { limit, offset = 0, between }: Page,
  ): readonly Warrant[] {
    if (of === null) return [];
    const bounds = between ? "AND position < ?4 AND position > ?5" : "";
    const positions = pageSql(of, state === undefined ? STATES : [state], order, bounds);
    return readRows(
      `SELECT position FROM (${positions}) AS page`,
      ORDERS[order].order,
      of.position,
      limit,
      offset,
      ...(between ?? []),
    );
  }

  return {
    ...createInstanceReads({ tables, raw }, readRows),
    sumsOfAgent: createSumsOfAgent(raw, (id) => agentById.get(id)?.position),
    find,
    get: ({ organisationId, mode }, id) => {
      const warrant = find(id);
      return warrant?.organisationId === organisationId && warrant.mode === mode ? warrant : null;
    },
    byDeadline: (scope, filter, offset, limit) =>
      page(whose(scope, filter), filter, "byDeadline", { limit, offset }),
    byCreation(scope, filter, { olderThan, newerThan }, limit) {
      const of = whose(scope, filter);
      const before = olderThan === undefined ? POSITION_MAX : positionOf.get(olderThan)?.position;
      const after = newerThan === undefined ? 0n : positionOf.get(newerThan)?.position;
      // A cursor that names no warrant gives an empty page.
      if (before === undefined || after === undefined) return [];
      const between = [before, after] as const;
      return newerThan === undefined
        ? page(of, filter, "newestFirst", { limit, between })
        : page(of, filter, "oldestFirst", { limit, between }).toReversed();
    },
    ofAgent(agentId, state, expiresAfter, limit) {
      const agent = agentById.get(agentId);
      if (agent === null) return [];
      return readRows(
        `SELECT position FROM (${ofAgentSql(state)}) AS page`,
        "deadline, position",
        ...[agent.position, expiresAfter, limit],
      );
    },
  };
}

/** No sum overflows: an account holds it, and a balance is no larger. */
function createSumsOfAgent(
  raw: SqlDatabase,
  positionOfAgent: (id: string) => bigint | undefined,
): SqlReader["warrants"]["sumsOfAgent"] {
  const sums = lazily(() => {
    const statementOf = (state: "held" | "frozen") =>
      raw.prepare<{ asset: string; count: bigint; amount: bigint }, [bigint, number, number]>(
        `SELECT accounts.asset AS asset, count(*) AS count, CAST(sum(amount) AS BIGINT) AS amount
         FROM warrants JOIN accounts ON accounts.position = warrants.account
         WHERE warrants.position IN (SELECT position FROM (${ofAgentSql(state)}) AS page)
         GROUP BY accounts.asset ORDER BY accounts.asset`,
      );
    const statements = { held: statementOf("held"), frozen: statementOf("frozen") };
    return (state: "held" | "frozen", ...asked: [bigint, number, number]) =>
      statements[state].all(...asked).map(({ count, ...sum }) => ({ ...sum, count: Number(count) }));
  });
  return (agentId, state, expiresAfter, limit) => {
    const agent = positionOfAgent(agentId);
    return agent === undefined ? [] : sums(state, agent, expiresAfter, limit);
  };
}

type Page = {
  readonly limit: number;
  readonly offset?: number;
  /** Only positions below the first of these and above the second. */
  readonly between?: readonly [below: bigint, above: bigint];
};

/** Reads the warrants at the positions that a query gives, in an order. */
type ReadRows = (positions: string, order: string, ...bindings: SqlValue[]) => readonly Warrant[];

/** Prepares one statement for each list, filter and order that is used: some dozens at most. */
function createReadRows(raw: SqlDatabase, names: Names): ReadRows {
  const prepared = new Map<string, SqlStatement<StoredWarrant, SqlValue[]>>();
  return (positions, order, ...bindings) => {
    const text = `SELECT * FROM warrants WHERE position IN (${positions}) ORDER BY ${order}`;
    let statement = prepared.get(text);
    if (statement === undefined) {
      statement = raw.prepare(text);
      prepared.set(text, statement);
    }
    return statement.all(...bindings).map((row) => warrantOf(row, names));
  };
}

/** The reads over all organisations, for the jobs and the operator. */
function createInstanceReads(
  { tables, raw }: Connection,
  readRows: ReadRows,
): Pick<SqlReader["warrants"], "overdue" | "overdueCount" | "countsByState" | "someSettled" | "verifying"> {
  const overdueCount = raw.prepare<{ count: bigint }, [number]>(
    `SELECT count(*) AS count FROM warrants WHERE state = 'held' AND ${EXPIRES_AT} <= ?`,
  );
  const newest = raw.query<{ position: bigint | null }, []>("SELECT max(position) AS position FROM warrants");
  const everySettled = raw.query<{ id: string }, []>(
    "SELECT id FROM warrants WHERE settled_at IS NOT NULL ORDER BY position",
  );
  /** The first of each of so many parts of all positions, in one statement: a round trip for each part would take long. */
  const firstSettled = raw.query<{ id: string | null }, [number, number]>(
    `WITH RECURSIVE parts (part) AS (SELECT 0 UNION ALL SELECT part + 1 FROM parts WHERE part + 1 < ?1)
     SELECT (SELECT id FROM warrants WHERE position > ?2 * part / ?1 AND position <= ?2 * (part + 1) / ?1
       AND settled_at IS NOT NULL ORDER BY position LIMIT 1) AS id
     FROM parts ORDER BY part`,
  );
  return {
    overdue: (now, limit) =>
      readRows(
        `SELECT position FROM warrants WHERE state = 'held' AND ${EXPIRES_AT} <= ? ORDER BY ${EXPIRES_AT}, position LIMIT ?`,
        `${EXPIRES_AT}, position`,
        now,
        limit,
      ),
    overdueCount: (now) => Number(overdueCount.get(now)?.count ?? 0n),
    countsByState: () =>
      Object.fromEntries(
        tables
          .select({
            state: warrantCounts.state,
            count: sql<number>`CAST(sum(${warrantCounts.count}) AS BIGINT)`.mapWith(Number),
          })
          .from(warrantCounts)
          .groupBy(warrantCounts.state)
          .orderBy(asc(warrantCounts.state))
          .all()
          .map(({ state, count }) => [state, count]),
      ) as Partial<Record<State, number>>,
    someSettled(warrantsMax) {
      const last = Number(newest.get()?.position ?? 0n);
      if (warrantsMax < 1) return [];
      const found = warrantsMax < last ? firstSettled.all(warrantsMax, last) : everySettled.all();
      return found.flatMap(({ id }) => id ?? []);
    },
    verifying: (afterId, limit) =>
      readRows(
        // Few warrants are verifying at a time, so sorting them is cheap.
        "SELECT position FROM warrants INDEXED BY warrants_verifying WHERE state = 'verifying' AND id > ? ORDER BY id LIMIT ?",
        "id",
        afterId,
        limit,
      ),
  };
}

export function createTraceReader({ tables, raw }: Connection, names: Names): SqlReader["trace"] {
  const byId = raw.prepare<StoredWarrant, [string]>("SELECT * FROM warrants WHERE id = ?");
  const ofWarrant = lazily(() => {
    const statement = tables
      .select(withoutDigest(trace))
      .from(trace)
      .where(eq(trace.warrant, placeholder("position")))
      .orderBy(asc(trace.sequence))
      .prepare();
    return (position: number) => statement.all({ position });
  });
  const pair = lazily(() => {
    const statement = tables
      .select(withoutDigest(trace))
      .from(trace)
      .where(
        and(
          eq(trace.warrant, placeholder("position")),
          sql`${trace.sequence} BETWEEN ${placeholder("sequence")} - 1 AND ${placeholder("sequence")}`,
        ),
      )
      .orderBy(desc(trace.sequence))
      .prepare();
    return (position: number, sequence: number) => statement.all({ position, sequence });
  });
  const checkById = finding(() =>
    tables.select(withoutDigest(checks)).from(checks).where(keyed(checks.id)).prepare(),
  );
  const checksOf = createChecksReader(tables).of;
  return {
    entry(warrantId, sequence) {
      const row = byId.get(warrantId);
      if (row === null) return null;
      const [step, before] = pair(Number(row.position), sequence).map((found) =>
        traceStepOf(found, warrantId),
      );
      if (step?.sequence !== sequence) return null;
      const check = step.checkId === null ? undefined : checkById(step.checkId);
      return entryAt(warrantOf(row, names), step, before ?? null, check ? checkOf(check, warrantId) : null);
    },
    of(warrantId): readonly TraceEntry[] {
      const row = byId.get(warrantId);
      if (row === null) return [];
      const steps = ofWarrant(Number(row.position)).map((step) => traceStepOf(step, warrantId));
      return entriesOf(warrantOf(row, names), steps, checksOf(warrantId));
    },
  };
}

export function createChecksReader(tables: Tables): Omit<SqlReader["checks"], "decided"> {
  const ofWarrant = lazily(() => {
    const statement = tables
      .select(withoutDigest(checks))
      .from(checks)
      .where(eq(checks.warrant, sql`(SELECT position FROM warrants WHERE id = ${placeholder("warrantId")})`))
      .orderBy(asc(checks.position))
      .prepare();
    return (warrantId: string) => statement.all({ warrantId });
  });
  return {
    of: (warrantId) => ofWarrant(warrantId).map((row) => checkOf(row, warrantId)),
    find(id) {
      const row = tables.select(withoutDigest(checks)).from(checks).where(eq(checks.id, id)).get();
      if (!row) return null;
      const of = tables
        .select({ id: warrants.id })
        .from(warrants)
        .where(eq(warrants.position, row.warrant))
        .get();
      return of ? checkOf(row, of.id) : null;
    },
  };
}
