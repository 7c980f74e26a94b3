import { type AnyColumn, and, asc, desc, eq, getTableColumns, gt, isNull, lt, sql } from "drizzle-orm";
import type { Part } from "../../scope.ts";
import type { Connection, Tables } from "../database.ts";
import { finding, keyed } from "../find-by-key.ts";
import { lazily } from "../lazily.ts";
import { balanceOf, fieldsOf } from "../rows.ts";
import { selectRows } from "../select-rows.ts";
import { apiKeys, instances, organisations, policies, schemas, verifiers } from "../tables/directory.ts";
import { accounts, scopes } from "../tables/ledger.ts";
import { createAgentsReader } from "./agents.ts";
import { inTexts, newestFirst, partOf, readingOf } from "./reading.ts";
import type { SqlReader } from "./sql-reader.ts";

const policy = fieldsOf(policies);

type DirectoryReader = Pick<
  SqlReader,
  "agents" | "policies" | "verifiers" | "schemas" | "organisations" | "apiKeys" | "balances" | "instance"
>;

/** The agent of a policy, as the index `policies_by_name` has it. */
const AGENT = "CASE WHEN agent_id IS NULL THEN '' ELSE agent_id END";

/**
 * The newest version of each name. The index has the names in order, so that versions are counted without their rows, and only
 * as many names as a page shows.
 */
const NEWEST = `WHERE position IN (
    SELECT max(position) FROM policies INDEXED BY policies_by_name
    WHERE organisation_id = ?1 AND (name, ${AGENT}) > (?2, ?3)
    GROUP BY name, ${AGENT} ORDER BY name, ${AGENT} LIMIT ?4)
  ORDER BY name, ${AGENT}`;

/** Every version after one, in the order of the whole list. Of a name with many versions it looks at the index alone. */
const SOME = `WHERE position IN (
    SELECT position FROM policies INDEXED BY policies_by_name
    WHERE organisation_id = ?1 AND name >= ?2 AND (name > ?2 OR position < ?3)
    ORDER BY name, position DESC LIMIT ?4)
  ORDER BY name, position DESC`;

const VERSIONS = `INDEXED BY policies_by_name
  WHERE organisation_id = ?1 AND name = ?2 AND ${AGENT} = ?3 AND version < ?4
  ORDER BY position DESC LIMIT ?5`;

function createPoliciesReader({ tables, raw }: Connection): SqlReader["policies"] {
  const newest = lazily(() => selectRows(raw, policy, NEWEST));
  const some = lazily(() => selectRows(raw, policy, SOME));
  const someOf = (organisationId: string, { after, limit }: Part) => {
    const { name = "", position = 0 } =
      (after !== null &&
        tables
          .select({ name: policies.name, position: policies.position })
          .from(policies)
          .where(eq(policies.id, after))
          .get()) ||
      {};
    return some(organisationId, name, position, limit);
  };
  const versions = lazily(() => selectRows(raw, policy, VERSIONS));
  return {
    get: (organisationId, id) =>
      tables
        .select(policy)
        .from(policies)
        .where(and(eq(policies.id, id), eq(policies.organisationId, organisationId)))
        .get() ?? null,
    newest: (organisationId, after, limit) =>
      newest(organisationId, after?.name ?? "", after?.agentId ?? "", limit),
    versions: ({ organisationId, name, agentId }, olderThan, limit) =>
      versions(organisationId, name, agentId ?? "", olderThan, limit),
    list(organisationId, part) {
      if (part) return someOf(organisationId, part);
      return tables
        .select(policy)
        .from(policies)
        .where(eq(policies.organisationId, organisationId))
        .orderBy(asc(policies.name), desc(policies.position))
        .all();
    },
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

function createBalancesReader(tables: Tables): SqlReader["balances"] {
  return {
    totals: () =>
      tables
        .select({
          mode: scopes.mode,
          asset: accounts.asset,
          available: sumOf(accounts.available),
          held: sumOf(accounts.held),
          paid: sumOf(accounts.paid),
          payable: sumOf(accounts.payable),
          submitted: sumOf(accounts.submitted),
        })
        .from(accounts)
        .innerJoin(scopes, eq(scopes.position, accounts.scope))
        .groupBy(scopes.mode, accounts.asset)
        .orderBy(asc(scopes.mode), asc(accounts.asset))
        .all()
        .map(({ mode, asset, available, held, paid, payable, submitted }) => ({
          mode,
          asset,
          balance: { available: fromHalves(available), held: fromHalves(held), paid: fromHalves(paid) },
          ...{ payable: fromHalves(payable), submitted: fromHalves(submitted) },
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

/** What clauses name: those that are saved, and JSON Schemas. */
const createClausesReader = (tables: Tables): Pick<SqlReader, "verifiers" | "schemas"> => ({
  verifiers: {
    get: (organisationId, id) =>
      tables
        .select(fieldsOf(verifiers))
        .from(verifiers)
        .where(and(eq(verifiers.id, id), eq(verifiers.organisationId, organisationId)))
        .get() ?? null,
    page: (organisationId, olderThan, limit) =>
      tables
        .select(fieldsOf(verifiers))
        .from(verifiers)
        .where(
          and(
            eq(verifiers.organisationId, organisationId),
            olderThan === null ? undefined : lt(verifiers.id, olderThan),
          ),
        )
        .orderBy(desc(verifiers.id))
        .limit(limit)
        .all(),
    list(organisationId, part) {
      const { bounds, limit } = partOf(verifiers.id, part);
      return tables
        .select(fieldsOf(verifiers))
        .from(verifiers)
        .where(and(eq(verifiers.organisationId, organisationId), bounds))
        .orderBy(asc(verifiers.id))
        .limit(limit)
        .all();
    },
  },
  schemas: {
    get: (organisationId, id) =>
      tables
        .select(fieldsOf(schemas))
        .from(schemas)
        .where(and(eq(schemas.id, id), eq(schemas.organisationId, organisationId)))
        .get() ?? null,
    page: (organisationId, after, limit) =>
      tables
        .select(fieldsOf(schemas))
        .from(schemas)
        .where(and(eq(schemas.organisationId, organisationId), gt(schemas.name, after)))
        .orderBy(asc(schemas.name))
        .limit(limit)
        .all(),
    named: (organisationId, names) =>
      names.length === 0
        ? []
        : tables
            .select(fieldsOf(schemas))
            .from(schemas)
            .where(and(eq(schemas.organisationId, organisationId), inTexts(schemas.name, names)))
            .orderBy(asc(schemas.name))
            .all(),
  },
});

export function createDirectoryReader(connection: Connection): DirectoryReader {
  const { tables, raw } = connection;
  const apiKeyByHash = finding(() =>
    tables.select().from(apiKeys).where(keyed(apiKeys.secretHash)).prepare(),
  );
  const instancesThere = lazily(() => selectRows(raw, getTableColumns(instances), ""));
  return {
    agents: createAgentsReader(connection),
    policies: createPoliciesReader(connection),
    ...createClausesReader(tables),
    organisations: {
      get: (id) => tables.select().from(organisations).where(eq(organisations.id, id)).get() ?? null,
      list: () => tables.select().from(organisations).orderBy(asc(organisations.id)).all(),
      any: () => tables.select({ id: organisations.id }).from(organisations).limit(1).get() !== undefined,
    },
    apiKeys: {
      byHash: apiKeyByHash,
      get: (id) => tables.select().from(apiKeys).where(eq(apiKeys.id, id)).get() ?? null,
      list({ organisationId, mode }, part) {
        const { bounds, limit } = partOf(apiKeys.id, part);
        return tables
          .select()
          .from(apiKeys)
          .where(and(eq(apiKeys.organisationId, organisationId), eq(apiKeys.mode, mode), bounds))
          .orderBy(asc(apiKeys.id))
          .limit(limit)
          .all();
      },
      ofAgent(agentId, cursor, limit) {
        const reading = readingOf(apiKeys.id, cursor);
        const rows = tables
          .select()
          .from(apiKeys)
          .where(and(eq(apiKeys.agentId, agentId), reading.bounds))
          .orderBy(reading.order)
          .limit(limit)
          .all();
        return newestFirst(reading, rows);
      },
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
