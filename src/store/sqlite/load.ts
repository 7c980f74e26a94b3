import type { Mode } from "../../core/roles.ts";
import type { Needs, Scope, Snapshot } from "../store.ts";
import {
  prepareCountingPasskey,
  prepareDirectoryLookups,
  prepareLedgerLookups,
  preparePeopleLookups,
} from "./lookups.ts";
import type { Tables } from "./open.ts";
import { balanceOf, idempotencyOf } from "./rows.ts";

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
  hasOtherOwner: false,
  hasPasskey: false,
  passkey: null,
  approval: null,
  passwordReset: null,
  apiKey: null,
};

const balanceOrNull = (row: Parameters<typeof balanceOf>[0] | undefined) => (row ? balanceOf(row) : null);

type Keys = { organisationId: string; mode: Mode };
type Loading = { -readonly [K in keyof Snapshot]: Snapshot[K] };

/** What the commands of people, and over them, name. */
function createLoadPeople(tables: Tables) {
  const lookups = preparePeopleLookups(tables);
  return (keys: Keys, needs: Needs, snapshot: Loading): void => {
    if (needs.userEmail !== undefined)
      snapshot.user = lookups.userByEmail.get({ email: needs.userEmail }) ?? null;
    if (needs.userId !== undefined) {
      snapshot.user = lookups.user.get({ ...keys, userId: needs.userId }) ?? null;
      snapshot.hasOtherOwner = Boolean(lookups.otherOwner.get({ ...keys, userId: needs.userId })?.id);
    }
    if (needs.secondPersonThan !== undefined) {
      const found = lookups.secondPerson.get({ ...keys, userId: needs.secondPersonThan });
      snapshot.hasSecondPerson = Boolean(found?.id);
    }
    if (needs.passkeyId !== undefined)
      snapshot.passkey = lookups.passkey.get({ ...keys, id: needs.passkeyId }) ?? null;
    if (needs.approvalHash !== undefined)
      snapshot.approval = lookups.approval.get({ hash: needs.approvalHash }) ?? null;
    if (needs.passwordResetHash !== undefined)
      snapshot.passwordReset = lookups.passwordReset.get({ hash: needs.passwordResetHash }) ?? null;
  };
}

export function createLoad(tables: Tables): Load {
  const lookups = {
    ...prepareDirectoryLookups(tables),
    ...prepareLedgerLookups(tables),
    countingPasskey: prepareCountingPasskey(tables),
  };
  const loadPeople = createLoadPeople(tables);

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
      organisation: lookups.organisation.get(keys) ?? null,
      hasPasskey: Boolean(lookups.countingPasskey.get(keys)?.id),
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
    loadPeople(keys, needs, snapshot);
    if (needs.callerAgentId !== undefined) {
      const isLoaded = snapshot.agent?.id === needs.callerAgentId;
      snapshot.callerAgent = isLoaded ? snapshot.agent : loadAgent(keys, needs.callerAgentId);
    }
    return snapshot;
  };
}
