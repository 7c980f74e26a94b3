import { and, desc, eq, inArray, isNull, ne, or, sql } from "drizzle-orm";
import type { Mode } from "../../core/roles.ts";
import type { Needs, Scope, Snapshot } from "../store.ts";
import type { Tables } from "./open.ts";
import { balanceOf, escalationOf, idempotencyOf, warrantOf } from "./rows.ts";
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

/** The prepared look-ups. Each takes the scope's organisation and mode where its table has them. */
function prepareLookups(tables: Tables) {
  const { agents, apiKeys, organisations, policies, schemas, spendSessions, users, verifiers } = directory;
  const { balances, escalations, idempotencyKeys, warrants } = ledger;
  const mine = (table: typeof warrants | typeof agents | typeof apiKeys | typeof escalations) =>
    and(eq(table.organisationId, placeholder("organisationId")), eq(table.mode, placeholder("mode")));
  const policiesOf = (owner: ReturnType<typeof and>) =>
    tables
      .select()
      .from(policies)
      .where(and(eq(policies.organisationId, placeholder("organisationId")), owner))
      .orderBy(desc(policies.id))
      .limit(1)
      .prepare();
  return {
    idempotency: tables
      .select()
      .from(idempotencyKeys)
      .where(
        and(
          eq(idempotencyKeys.organisationId, placeholder("organisationId")),
          eq(idempotencyKeys.mode, placeholder("mode")),
          eq(idempotencyKeys.key, placeholder("key")),
        ),
      )
      .prepare(),
    organisation: tables
      .select()
      .from(organisations)
      .where(eq(organisations.id, placeholder("organisationId")))
      .prepare(),
    warrant: tables
      .select()
      .from(warrants)
      .where(and(eq(warrants.id, placeholder("id")), mine(warrants)))
      .prepare(),
    agent: tables
      .select()
      .from(agents)
      .where(and(eq(agents.id, placeholder("id")), mine(agents)))
      .prepare(),
    apiKey: tables
      .select()
      .from(apiKeys)
      .where(and(eq(apiKeys.id, placeholder("id")), mine(apiKeys)))
      .prepare(),
    session: tables
      .select()
      .from(spendSessions)
      .where(eq(spendSessions.id, placeholder("id")))
      .prepare(),
    newestSession: tables
      .select()
      .from(spendSessions)
      .where(eq(spendSessions.agentId, placeholder("agentId")))
      .orderBy(desc(spendSessions.id))
      .limit(1)
      .prepare(),
    policy: policiesOf(eq(policies.id, placeholder("id"))),
    policyNamed: policiesOf(
      and(
        sql`coalesce(${policies.agentId}, '') = ${placeholder("agentId")}`,
        eq(policies.name, placeholder("name")),
      ),
    ),
    agentPolicy: policiesOf(eq(policies.agentId, placeholder("agentId"))),
    organisationPolicy: policiesOf(isNull(policies.agentId)),
    verifier: tables
      .select()
      .from(verifiers)
      .where(
        and(eq(verifiers.id, placeholder("id")), eq(verifiers.organisationId, placeholder("organisationId"))),
      )
      .prepare(),
    schema: tables
      .select()
      .from(schemas)
      .where(
        and(eq(schemas.organisationId, placeholder("organisationId")), eq(schemas.name, placeholder("name"))),
      )
      .prepare(),
    balance: tables
      .select()
      .from(balances)
      .where(
        and(
          eq(balances.organisationId, placeholder("organisationId")),
          eq(balances.mode, placeholder("mode")),
          eq(balances.asset, placeholder("asset")),
        ),
      )
      .prepare(),
    escalation: tables
      .select()
      .from(escalations)
      .where(
        and(
          or(eq(escalations.id, placeholder("id")), eq(escalations.warrantId, placeholder("id"))),
          mine(escalations),
        ),
      )
      .orderBy(desc(escalations.id))
      .limit(1)
      .prepare(),
    secondPerson: tables
      .select({ id: users.id })
      .from(users)
      .where(
        and(
          eq(users.organisationId, placeholder("organisationId")),
          ne(users.id, placeholder("userId")),
          inArray(users.role, ["admin", "owner"]),
        ),
      )
      .limit(1)
      .prepare(),
    userByEmail: tables
      .select()
      .from(users)
      .where(eq(users.email, placeholder("email")))
      .prepare(),
  };
}

export function createLoad(tables: Tables): Load {
  const lookups = prepareLookups(tables);
  type Keys = { organisationId: string; mode: Mode };

  const loadBalance = (keys: Keys, asset: string) => {
    const row = lookups.balance.get({ ...keys, asset });
    return row ? balanceOf(row) : null;
  };

  const loadAgent = (keys: Keys, id: string | null) =>
    id === null ? null : (lookups.agent.get({ ...keys, id }) ?? null);

  /** A warrant and all that a move of it touches. */
  function loadWarrant(keys: Keys, id: string): Partial<Snapshot> {
    const row = lookups.warrant.get({ ...keys, id });
    if (!row) return {};
    const escalation =
      row.state === "held" || row.state === "verifying" ? undefined : lookups.escalation.get({ ...keys, id });
    return {
      warrant: warrantOf(row),
      agent: loadAgent(keys, row.agentId),
      session: row.sessionId === null ? null : (lookups.session.get({ id: row.sessionId }) ?? null),
      policy: row.policyId === null ? null : (lookups.policy.get({ ...keys, id: row.policyId }) ?? null),
      balance: loadBalance(keys, row.asset),
      escalation: escalation ? escalationOf(escalation) : null,
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
    const named =
      opening.policyId === null ? null : (lookups.policy.get({ ...keys, id: opening.policyId }) ?? null);
    const agent = loadAgent(keys, opening.agentId);
    const verifier =
      opening.verifierId === null
        ? null
        : (lookups.verifier.get({ ...keys, id: opening.verifierId }) ?? null);
    const savedSchema = verifier?.type === "json.schema" ? [String(verifier.config.schema)] : [];
    const ownPolicy = (id: string) => lookups.agentPolicy.get({ ...keys, agentId: id }) ?? null;
    return {
      agent,
      session: agent === null ? null : (lookups.newestSession.get({ agentId: agent.id }) ?? null),
      policy: named,
      policyNewest:
        named &&
        (lookups.policyNamed.get({ ...keys, agentId: named.agentId ?? "", name: named.name }) ?? null),
      agentPolicy: agent && ownPolicy(agent.id),
      callerAgentPolicy: named && callerAgentId !== undefined ? ownPolicy(callerAgentId) : null,
      organisationPolicy: lookups.organisationPolicy.get(keys) ?? null,
      verifier,
      schemas: loadSchemas(keys, [...new Set([...opening.schemaNames, ...savedSchema])]),
      balance: loadBalance(keys, opening.asset),
    };
  }

  function loadEscalation(keys: Keys, id: string): Partial<Snapshot> {
    const row = lookups.escalation.get({ ...keys, id });
    return row ? { ...loadWarrant(keys, row.warrantId), escalation: escalationOf(row) } : {};
  }

  return ({ organisationId, mode }, needs) => {
    const keys = { organisationId, mode };
    const snapshot: { -readonly [K in keyof Snapshot]: Snapshot[K] } = { ...NOTHING };
    if (needs.idempotencyKey !== undefined) {
      const row = lookups.idempotency.get({ ...keys, key: needs.idempotencyKey });
      snapshot.idempotency = row ? idempotencyOf(row) : null;
    }
    if (needs.opening) Object.assign(snapshot, loadOpening(keys, needs.opening, needs.callerAgentId));
    if (needs.warrantId !== undefined) Object.assign(snapshot, loadWarrant(keys, needs.warrantId));
    if (needs.escalationId !== undefined) Object.assign(snapshot, loadEscalation(keys, needs.escalationId));
    if (needs.organisation) snapshot.organisation = lookups.organisation.get(keys) ?? null;
    if (needs.agentId !== undefined) {
      snapshot.agent = loadAgent(keys, needs.agentId);
      snapshot.session = lookups.newestSession.get({ agentId: needs.agentId }) ?? null;
    }
    if (needs.callerAgentId !== undefined) {
      snapshot.callerAgent =
        snapshot.agent?.id === needs.callerAgentId ? snapshot.agent : loadAgent(keys, needs.callerAgentId);
    }
    if (needs.apiKeyId !== undefined)
      snapshot.apiKey = lookups.apiKey.get({ ...keys, id: needs.apiKeyId }) ?? null;
    if (needs.balanceOf !== undefined) snapshot.balance = loadBalance(keys, needs.balanceOf);
    if (needs.userEmail !== undefined)
      snapshot.user = lookups.userByEmail.get({ email: needs.userEmail }) ?? null;
    if (needs.secondPersonThan !== undefined) {
      snapshot.hasSecondPerson =
        lookups.secondPerson.get({ ...keys, userId: needs.secondPersonThan }) !== undefined;
    }
    if (needs.schemaNames) snapshot.schemas = loadSchemas(keys, needs.schemaNames);
    if (needs.policyNamed) {
      const { agentId, name } = needs.policyNamed;
      snapshot.policyNewest = lookups.policyNamed.get({ ...keys, agentId: agentId ?? "", name }) ?? null;
    }
    return snapshot;
  };
}
