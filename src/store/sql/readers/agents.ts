import { and, asc, desc, eq, gt, isNull, sql } from "drizzle-orm";
import type { State } from "../../../core/warrant.ts";
import type { Connection } from "../database.ts";
import { fieldsOf } from "../rows.ts";
import { selectRows } from "../select-rows.ts";
import { heldUntilIn } from "../session-totals.ts";
import { agents, policies, spendSessions } from "../tables/directory.ts";
import { scopes, warrantCounts } from "../tables/ledger.ts";
import { newestFirst, partOf, readingOf } from "./reading.ts";
import type { SqlReader } from "./sql-reader.ts";

const agent = fieldsOf(agents);
const policy = fieldsOf(policies);
const spendSession = fieldsOf(spendSessions);

/** The SQL for whether an agent has a warrant in a state: one that names it, or one that only its key opened. */
const hasSome = (state: "held" | "frozen", bounds: string): string =>
  ["agent = agents.position", "opened_by_agent = agents.position AND opened_by_agent IS DISTINCT FROM agent"]
    .map((condition) => `EXISTS (SELECT 1 FROM warrants WHERE ${condition} AND state = '${state}' ${bounds})`)
    .join(" OR ");

function createSessionsReader({
  tables,
  raw,
}: Pick<Connection, "tables" | "raw">): Pick<
  SqlReader["agents"],
  "heldUntil" | "sessions" | "liveSession" | "session"
> {
  return {
    heldUntil: heldUntilIn(raw),
    sessions(agentId, cursor, limit) {
      const positionOf = (id: string) =>
        sql`(SELECT ${spendSessions.position} FROM ${spendSessions} WHERE ${spendSessions.id} = ${id})`;
      const reading = readingOf(spendSessions.position, cursor, positionOf);
      const rows = tables
        .select(spendSession)
        .from(spendSessions)
        .where(and(eq(spendSessions.agentId, agentId), reading.bounds))
        .orderBy(reading.order)
        .limit(limit)
        .all();
      return newestFirst(reading, rows);
    },
    liveSession: (agentId, now) =>
      tables
        .select(spendSession)
        .from(spendSessions)
        .where(
          and(
            eq(spendSessions.agentId, agentId),
            isNull(spendSessions.revokedAt),
            gt(spendSessions.expiresAt, now),
          ),
        )
        .orderBy(desc(spendSessions.position))
        .limit(1)
        .get() ?? null,
    session: (id) =>
      tables.select(spendSession).from(spendSessions).where(eq(spendSessions.id, id)).get() ?? null,
  };
}

export function createAgentsReader({ tables, raw }: Connection): SqlReader["agents"] {
  const withStatusToFollow = selectRows(
    raw,
    agent,
    `WHERE status = 'killed' AND (${hasSome("held", "")})
       OR status = 'active' AND (${hasSome("frozen", "AND deadline > ?1")}
         OR EXISTS (SELECT 1 FROM warrants WHERE state = 'frozen' AND grace_until > ?1
           AND agents.position IN (agent, opened_by_agent)))
     ORDER BY agents.position LIMIT ?2`,
  );
  return {
    ...createSessionsReader({ tables, raw }),
    get: (id) => tables.select(agent).from(agents).where(eq(agents.id, id)).get() ?? null,
    withStatusToFollow,
    list({ organisationId, mode }, part) {
      const { bounds, limit } = partOf(agents.id, part);
      return tables
        .select(agent)
        .from(agents)
        .where(and(eq(agents.organisationId, organisationId), eq(agents.mode, mode), bounds))
        .orderBy(asc(agents.id))
        .limit(limit)
        .all();
    },
    page({ organisationId, mode }, cursor, limit) {
      const reading = readingOf(agents.id, cursor);
      const rows = tables
        .select(agent)
        .from(agents)
        .where(and(eq(agents.organisationId, organisationId), eq(agents.mode, mode), reading.bounds))
        .orderBy(reading.order)
        .limit(limit)
        .all();
      return newestFirst(reading, rows);
    },
    countsByState: ({ id, organisationId, mode }) => {
      const rows = tables
        .select({ state: warrantCounts.state, count: warrantCounts.count })
        .from(scopes)
        .innerJoin(
          agents,
          and(
            eq(agents.organisationId, scopes.organisationId),
            eq(agents.mode, scopes.mode),
            eq(agents.id, id),
          ),
        )
        .innerJoin(
          warrantCounts,
          and(eq(warrantCounts.scope, scopes.position), eq(warrantCounts.agent, agents.position)),
        )
        .where(and(eq(scopes.organisationId, organisationId), eq(scopes.mode, mode)))
        .orderBy(asc(warrantCounts.state))
        .all();
      return Object.fromEntries(rows.map((row) => [row.state, row.count])) as Partial<Record<State, number>>;
    },
    ownPolicy: (agentId) =>
      tables
        .select(policy)
        .from(policies)
        .where(eq(policies.agentId, agentId))
        .orderBy(desc(policies.position))
        .limit(1)
        .get() ?? null,
  };
}
