import { type AnyColumn, and, asc, desc, eq, getTableColumns, gt, inArray, isNull, sql } from "drizzle-orm";
import type { State } from "../../../core/warrant.ts";
import { finding, keyed } from "../find-by-key.ts";
import { lazily } from "../lazily.ts";
import type { Connection, Tables } from "../open.ts";
import { balanceOf, fieldsOf } from "../rows.ts";
import { selectRows } from "../select-rows.ts";
import {
  agents,
  apiKeys,
  instances,
  organisations,
  policies,
  schemas,
  spendSessions,
  verifiers,
} from "../tables/directory.ts";
import { accounts, scopes, warrantCounts } from "../tables/ledger.ts";
import type { SqliteReader } from "./sqlite-reader.ts";

const agent = fieldsOf(agents);
const policy = fieldsOf(policies);
const spendSession = fieldsOf(spendSessions);

type DirectoryReader = Pick<
  SqliteReader,
  "agents" | "policies" | "verifiers" | "schemas" | "organisations" | "apiKeys" | "balances" | "instance"
>;

/** The SQL for whether an agent has a warrant in a state: one that names it, or one that only its key opened. */
const hasSome = (state: "held" | "frozen", bounds: string): string =>
  ["agent = agents.position", "opened_by_agent = agents.position AND opened_by_agent IS NOT agent"]
    .map((condition) => `EXISTS (SELECT 1 FROM warrants WHERE ${condition} AND state = '${state}' ${bounds})`)
    .join(" OR ");

function createAgentsReader({ tables, raw }: Connection): SqliteReader["agents"] {
  const withStatusToFollow = selectRows(
    raw,
    agent,
    `WHERE status = 'killed' AND (${hasSome("held", "")})
       OR status = 'active' AND (${hasSome("frozen", "AND deadline > ?1")}
         OR EXISTS (SELECT 1 FROM warrants WHERE state = 'frozen' AND grace_until > ?1
           AND agents.position IN (agent, opened_by_agent)))
     LIMIT ?2`,
  );
  return {
    get: (id) => tables.select(agent).from(agents).where(eq(agents.id, id)).get() ?? null,
    withStatusToFollow,
    list: ({ organisationId, mode }) =>
      tables
        .select(agent)
        .from(agents)
        .where(and(eq(agents.organisationId, organisationId), eq(agents.mode, mode)))
        .orderBy(asc(agents.id))
        .all(),
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

function createPoliciesReader(tables: Tables): SqliteReader["policies"] {
  return {
    list: (organisationId) =>
      tables
        .select(policy)
        .from(policies)
        .where(eq(policies.organisationId, organisationId))
        .orderBy(asc(policies.name), desc(policies.position))
        .all(),
    ofOrganisation: (organisationId) =>
      tables
        .select(policy)
        .from(policies)
        .where(and(eq(policies.organisationId, organisationId), isNull(policies.agentId)))
        .orderBy(desc(policies.position))
        .limit(1)
        .get() ?? null,
  };
}

/** The sum of a column without negative values, in two halves: a single sum could overflow. */
const sumOf = (column: AnyColumn) =>
  sql<string>`sum(${column} / 4294967296) || ' ' || sum(${column} % 4294967296)`;

function fromHalves(halves: string): bigint {
  const [upper = "0", lower = "0"] = halves.split(" ");
  return BigInt(upper) * 4_294_967_296n + BigInt(lower);
}

function createBalancesReader(tables: Tables): SqliteReader["balances"] {
  return {
    totals: () =>
      tables
        .select({
          mode: scopes.mode,
          asset: accounts.asset,
          available: sumOf(accounts.available),
          held: sumOf(accounts.held),
          paid: sumOf(accounts.paid),
        })
        .from(accounts)
        .innerJoin(scopes, eq(scopes.position, accounts.scope))
        .groupBy(scopes.mode, accounts.asset)
        .all()
        .map(({ mode, asset, available, held, paid }) => ({
          mode,
          asset,
          balance: { available: fromHalves(available), held: fromHalves(held), paid: fromHalves(paid) },
        })),
    list: ({ organisationId, mode }) =>
      tables
        .select({
          asset: accounts.asset,
          available: accounts.available,
          held: accounts.held,
          paid: accounts.paid,
        })
        .from(scopes)
        .innerJoin(accounts, eq(accounts.scope, scopes.position))
        .where(and(eq(scopes.organisationId, organisationId), eq(scopes.mode, mode)))
        .orderBy(asc(accounts.asset))
        .all()
        .map((row) => ({ asset: row.asset, balance: balanceOf(row) })),
  };
}

export function createDirectoryReader(connection: Connection): DirectoryReader {
  const { tables, raw } = connection;
  const apiKeyByHash = finding(() =>
    tables.select().from(apiKeys).where(keyed(apiKeys.secretHash)).prepare(),
  );
  const instancesThere = lazily(() => selectRows(raw, getTableColumns(instances), ""));
  return {
    agents: createAgentsReader(connection),
    policies: createPoliciesReader(tables),
    verifiers: {
      list: (organisationId) =>
        tables
          .select(fieldsOf(verifiers))
          .from(verifiers)
          .where(eq(verifiers.organisationId, organisationId))
          .orderBy(asc(verifiers.id))
          .all(),
    },
    schemas: {
      named: (organisationId, names) =>
        names.length === 0
          ? []
          : tables
              .select(fieldsOf(schemas))
              .from(schemas)
              .where(and(eq(schemas.organisationId, organisationId), inArray(schemas.name, [...names])))
              .all(),
    },
    organisations: {
      get: (id) => tables.select().from(organisations).where(eq(organisations.id, id)).get() ?? null,
      list: () => tables.select().from(organisations).orderBy(asc(organisations.id)).all(),
    },
    apiKeys: {
      byHash: apiKeyByHash,
      get: (id) => tables.select().from(apiKeys).where(eq(apiKeys.id, id)).get() ?? null,
      list: ({ organisationId, mode }) =>
        tables
          .select()
          .from(apiKeys)
          .where(and(eq(apiKeys.organisationId, organisationId), eq(apiKeys.mode, mode)))
          .orderBy(asc(apiKeys.id))
          .all(),
    },
    instance: {
      get: () => {
        const [instance] = instancesThere();
        // It is made together with the ledger (open.ts).
        if (!instance) throw new Error("the ledger has no instance");
        return instance;
      },
    },
    balances: createBalancesReader(tables),
  };
}
