import { and, type Column, eq, inArray, isNull, max, ne, or, type SQL, sql } from "drizzle-orm";
import type { Mode } from "../../core/roles.ts";
import type { Needs, Scope, Snapshot } from "../store.ts";
import type { Tables } from "./open.ts";
import { balanceOf, idempotencyOf } from "./rows.ts";
import * as directory from "./tables/directory.ts";
import * as ledger from "./tables/ledger.ts";

/** Reads what commands name. Called inside the transaction that decides, so nothing here is ever stale. */
export type Load = (scope: Scope, needs: Needs) => Snapshot;

const NOTHING: Snapshot = {
  idempotency: null,
  organisation: null,
  warrant: null,
  agent: null,
  callerAgent: null,
  session: null,
  policy: null,
  policyNewest: null,
  agentPolicy: null,
  callerAgentPolicy: null,
  organisationPolicy: null,
  verifier: null,
  schemas: [],
  balance: null,
  escalation: null,
  user: null,
  hasSecondPerson: false,
  apiKey: null,
};

const { placeholder } = sql;

/** Where a look-up finds the scope's organisation, and its mode. */
const inOrganisation = (table: { readonly organisationId: Column }) =>
  eq(table.organisationId, placeholder("organisationId"));
const inScope = (table: { readonly organisationId: Column; readonly mode: Column }) =>
  and(inOrganisation(table), eq(table.mode, placeholder("mode")));

/** The id of an owner's newest policy row. By `max`: SQLite would plan a `LIMIT ?` anew at every call. */
const newestPolicy = (tables: Tables, owner: SQL | undefined) =>
  tables
    .select({ id: max(directory.policies.id) })
    .from(directory.policies)
    .where(and(inOrganisation(directory.policies), owner))
    .prepare();

function prepareDirectoryLookups(tables: Tables) {
  const { agents, apiKeys, organisations, policies, schemas, spendSessions, users, verifiers } = directory;
  const byId = (table: typeof agents | typeof apiKeys | typeof policies | typeof verifiers) =>
    eq(table.id, placeholder("id"));
  const newestSession = tables
    .select({ id: max(spendSessions.id) })
    .from(spendSessions)
    .where(eq(spendSessions.agentId, placeholder("agentId")));
  return {
    organisation: tables
      .select()
      .from(organisations)
      .where(eq(organisations.id, placeholder("organisationId")))
      .prepare(),
    agent: tables
      .select()
      .from(agents)
      .where(and(byId(agents), inScope(agents)))
      .prepare(),
    apiKey: tables
      .select()
      .from(apiKeys)
      .where(and(byId(apiKeys), inScope(apiKeys)))
      .prepare(),
    session: tables
      .select()
      .from(spendSessions)
      .where(eq(spendSessions.id, placeholder("id")))
      .prepare(),
    newestSession: tables.select().from(spendSessions).where(eq(spendSessions.id, newestSession)).prepare(),
    policy: tables
      .select()
      .from(policies)
      .where(and(byId(policies), inOrganisation(policies)))
      .prepare(),
    policyNamed: newestPolicy(
      tables,
      and(sql`${policies.agentId} IS ${placeholder("agentId")}`, eq(policies.name, placeholder("name"))),
    ),
    agentPolicy: newestPolicy(tables, eq(policies.agentId, placeholder("agentId"))),
    organisationPolicy: newestPolicy(tables, isNull(policies.agentId)),
    verifier: tables
      .select()
      .from(verifiers)
      .where(and(byId(verifiers), inOrganisation(verifiers)))
      .prepare(),
    schema: tables
      .select()
      .from(schemas)
      .where(and(inOrganisation(schemas), eq(schemas.name, placeholder("name"))))
      .prepare(),
    secondPerson: tables
      .select({ id: max(users.id) })
      .from(users)
      .where(
        and(
          inOrganisation(users),
          ne(users.id, placeholder("userId")),
          inArray(users.role, ["admin", "owner"]),
        ),
      )
      .prepare(),
    userByEmail: tables
      .select()
      .from(users)
      .where(eq(users.email, placeholder("email")))
      .prepare(),
  };
}

function prepareLedgerLookups(tables: Tables) {
  const { balances, escalations, idempotencyKeys, warrants } = ledger;
  const newestEscalation = tables
    .select({ id: max(escalations.id) })
    .from(escalations)
    .where(or(eq(escalations.id, placeholder("id")), eq(escalations.warrantId, placeholder("id"))));
  return {
    idempotency: tables
      .select()
      .from(idempotencyKeys)
      .where(and(inScope(idempotencyKeys), eq(idempotencyKeys.key, placeholder("key"))))
      .prepare(),
    warrant: tables
      .select()
      .from(warrants)
      .where(and(eq(warrants.id, placeholder("id")), inScope(warrants)))
      .prepare(),
    balance: tables
      .select()
      .from(balances)
      .where(and(inScope(balances), eq(balances.asset, placeholder("asset"))))
      .prepare(),
    escalation: tables
      .select()
      .from(escalations)
      .where(and(eq(escalations.id, newestEscalation), inScope(escalations)))
      .prepare(),
  };
}

const balanceOrNull = (row: Parameters<typeof balanceOf>[0] | undefined) => (row ? balanceOf(row) : null);

type Keys = { organisationId: string; mode: Mode };
type Loading = { -readonly [K in keyof Snapshot]: Snapshot[K] };

export function createLoad(tables: Tables): Load {
  const lookups = { ...prepareDirectoryLookups(tables), ...prepareLedgerLookups(tables) };

  const loadAgent = (keys: Keys, id: string | null) =>
    id === null ? null : (lookups.agent.get({ ...keys, id }) ?? null);

  const loadPolicy = (keys: Keys, found: { readonly id: string | null } | undefined) =>
    typeof found?.id === "string" ? (lookups.policy.get({ ...keys, id: found.id }) ?? null) : null;

  const loadPolicyNamed = (keys: Keys, agentId: string | null, name: string) =>
    loadPolicy(keys, lookups.policyNamed.get({ ...keys, agentId, name }));

  /** A warrant and all that a move of it touches. */
  function loadWarrant(keys: Keys, id: string): Partial<Snapshot> {
    const row = lookups.warrant.get({ ...keys, id });
    if (!row) return {};
    const escalation =
      row.state === "held" || row.state === "verifying" ? undefined : lookups.escalation.get({ ...keys, id });
    return {
      warrant: row,
      agent: loadAgent(keys, row.agentId),
      session: row.sessionId === null ? null : (lookups.session.get({ id: row.sessionId }) ?? null),
      policy: loadPolicy(keys, { id: row.policyId }),
      escalation: escalation ?? null,
    };
  }

  function loadSchemas(keys: Keys, names: readonly string[]) {
    return names.flatMap((name) => lookups.schema.get({ ...keys, name }) ?? []);
  }

  function loadOpening(
    keys: Keys,
    opening: NonNullable<Needs["opening"]>,
    callerAgentId: string | undefined,
  ): Partial<Snapshot> {
    const named = loadPolicy(keys, { id: opening.policyId });
    const agent = loadAgent(keys, opening.agentId);
    const verifier =
      opening.verifierId === null
        ? null
        : (lookups.verifier.get({ ...keys, id: opening.verifierId }) ?? null);
    const savedSchema = verifier?.type === "json.schema" ? [String(verifier.config.schema)] : [];
    const ownPolicy = (id: string) => loadPolicy(keys, lookups.agentPolicy.get({ ...keys, agentId: id }));
    return {
      agent,
      session: agent === null ? null : (lookups.newestSession.get({ agentId: agent.id }) ?? null),
      policy: named,
      policyNewest: named && loadPolicyNamed(keys, named.agentId, named.name),
      agentPolicy: agent && ownPolicy(agent.id),
      callerAgentPolicy: named && callerAgentId !== undefined ? ownPolicy(callerAgentId) : null,
      organisationPolicy: loadPolicy(keys, lookups.organisationPolicy.get(keys)),
      verifier,
      schemas: loadSchemas(keys, [...new Set([...opening.schemaNames, ...savedSchema])]),
      balance: balanceOrNull(lookups.balance.get({ ...keys, asset: opening.asset })),
    };
  }

  function loadEscalation(keys: Keys, id: string): Partial<Snapshot> {
    const row = lookups.escalation.get({ ...keys, id });
    return row ? { ...loadWarrant(keys, row.warrantId), escalation: row } : {};
  }

  /** What the administration's commands name. */
  function loadDirectory(keys: Keys, needs: Needs, snapshot: Loading): void {
    if (needs.organisation) snapshot.organisation = lookups.organisation.get(keys) ?? null;
    if (needs.agentId !== undefined) {
      snapshot.agent = loadAgent(keys, needs.agentId);
      snapshot.session = lookups.newestSession.get({ agentId: needs.agentId }) ?? null;
    }
    if (needs.apiKeyId !== undefined)
      snapshot.apiKey = lookups.apiKey.get({ ...keys, id: needs.apiKeyId }) ?? null;
    if (needs.balanceOf !== undefined)
      snapshot.balance = balanceOrNull(lookups.balance.get({ ...keys, asset: needs.balanceOf }));
    if (needs.userEmail !== undefined)
      snapshot.user = lookups.userByEmail.get({ email: needs.userEmail }) ?? null;
    if (needs.schemaNames) snapshot.schemas = loadSchemas(keys, needs.schemaNames);
    if (needs.policyNamed) {
      const { agentId, name } = needs.policyNamed;
      snapshot.policyNewest = loadPolicyNamed(keys, agentId, name);
    }
  }

  return ({ organisationId, mode }, needs) => {
    const keys = { organisationId, mode };
    const snapshot: Loading = { ...NOTHING };
    if (needs.idempotencyKey !== undefined) {
      const row = lookups.idempotency.get({ ...keys, key: needs.idempotencyKey });
      snapshot.idempotency = row ? idempotencyOf(row) : null;
    }
    if (needs.opening) Object.assign(snapshot, loadOpening(keys, needs.opening, needs.callerAgentId));
    if (needs.warrantId !== undefined) Object.assign(snapshot, loadWarrant(keys, needs.warrantId));
    if (needs.escalationId !== undefined) Object.assign(snapshot, loadEscalation(keys, needs.escalationId));
    loadDirectory(keys, needs, snapshot);
    if (needs.callerAgentId !== undefined) {
      const isLoaded = snapshot.agent?.id === needs.callerAgentId;
      snapshot.callerAgent = isLoaded ? snapshot.agent : loadAgent(keys, needs.callerAgentId);
    }
    if (needs.secondPersonThan !== undefined) {
      const found = lookups.secondPerson.get({ ...keys, userId: needs.secondPersonThan });
      snapshot.hasSecondPerson = Boolean(found?.id);
    }
    return snapshot;
  };
}
