import type { Mode } from "../../core/roles.ts";
import type { Needs, Scope, Snapshot } from "../store.ts";
import type { KnownRows } from "./known-rows.ts";
import {
  prepareDirectoryLookups,
  prepareLedgerLookups,
  prepareOperationLookups,
  preparePeopleLookups,
  preparePurchaseLookups,
} from "./lookups.ts";
import type { Tables } from "./open.ts";
import { balanceOf, idempotencyOf, purchaseOf } from "./rows.ts";

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
  callerUser: null,
  user: null,
  hasSecondPerson: false,
  hasOtherOwner: false,
  hasPasskey: false,
  passkey: null,
  passkeys: [],
  approval: null,
  passwordReset: null,
  webhooks: [],
  webhook: null,
  delivery: null,
  instance: null,
  purchase: null,
  openAuthorizations: 0n,
  authSession: null,
  apiKey: null,
};

const balanceOrNull = (row: Parameters<typeof balanceOf>[0] | undefined) => (row ? balanceOf(row) : null);

const purchaseOrNull = (row: Parameters<typeof purchaseOf>[0] | undefined) => (row ? purchaseOf(row) : null);

type Keys = { organisationId: string; mode: Mode };
type Loading = { -readonly [K in keyof Snapshot]: Snapshot[K] };

/** What the commands of people, and over them, name. */
function createLoadPeople(tables: Tables) {
  const lookups = preparePeopleLookups(tables);
  const user = (keys: Keys, userId: string) => lookups.user.get({ ...keys, userId }) ?? null;
  return (keys: Keys, needs: Needs, snapshot: Loading): void => {
    if (needs.userEmail !== undefined)
      snapshot.user = lookups.userByEmail.get({ email: needs.userEmail }) ?? null;
    if (needs.userId !== undefined) snapshot.user = user(keys, needs.userId);
    if (needs.callerUserId !== undefined) snapshot.callerUser = user(keys, needs.callerUserId);
    if (needs.otherOwnerThan !== undefined) {
      const found = lookups.otherOwner.get({ ...keys, userId: needs.otherOwnerThan });
      snapshot.hasOtherOwner = Boolean(found?.id);
    }
    if (needs.secondPersonThan !== undefined) {
      const found = lookups.secondPerson.get({ ...keys, userId: needs.secondPersonThan });
      snapshot.hasSecondPerson = Boolean(found?.id);
    }
    if (needs.passkeyId !== undefined)
      snapshot.passkey = lookups.passkey.get({ ...keys, id: needs.passkeyId }) ?? null;
    if (needs.passkeysOf !== undefined)
      snapshot.passkeys = lookups.passkeysOf.all({ ...keys, userId: needs.passkeysOf });
    if (needs.approvalHash !== undefined)
      snapshot.approval = lookups.approval.get({ hash: needs.approvalHash }) ?? null;
    if (needs.passwordResetHash !== undefined)
      snapshot.passwordReset = lookups.passwordReset.get({ hash: needs.passwordResetHash }) ?? null;
    if (needs.authSessionHash !== undefined)
      snapshot.authSession = lookups.authSession.get({ hash: needs.authSessionHash }) ?? null;
  };
}

/** What seldom changes: read once, and known until it does. */
function createDirectory(tables: Tables, known: KnownRows) {
  const lookups = { ...prepareDirectoryLookups(tables), ...prepareOperationLookups(tables) };

  const policy = (keys: Keys, id: string | null) =>
    id === null
      ? null
      : known.get(
          "policy",
          `${keys.organisationId} ${id}`,
          () => lookups.policy.get({ ...keys, id }) ?? null,
        );

  return {
    policy,
    organisation: (keys: Keys) =>
      known.get("organisation", keys.organisationId, () => lookups.organisation.get(keys) ?? null),
    agent: (keys: Keys, id: string | null) =>
      id === null
        ? null
        : known.get("agent", `${scopeKey(keys)} ${id}`, () => lookups.agent.get({ ...keys, id }) ?? null),
    apiKey: (keys: Keys, id: string) =>
      known.get("apiKey", `${scopeKey(keys)} ${id}`, () => lookups.apiKey.get({ ...keys, id }) ?? null),
    newestPolicy: (keys: Keys, agentId: string | null) =>
      known.get("policy", `newest ${keys.organisationId} ${agentId}`, () => {
        const lookup = agentId === null ? lookups.organisationPolicy : lookups.agentPolicy;
        return policy(keys, lookup.get({ ...keys, agentId })?.id ?? null);
      }),
    policyNamed: (keys: Keys, agentId: string | null, name: string) =>
      policy(keys, lookups.policyNamed.get({ ...keys, agentId, name })?.id ?? null),
    verifier: (keys: Keys, id: string | null) =>
      id === null ? null : (lookups.verifier.get({ ...keys, id }) ?? null),
    schemas: (keys: Keys, names: readonly string[]) =>
      names.flatMap(
        (name) =>
          known.get(
            "schema",
            `${keys.organisationId} ${name}`,
            () => lookups.schema.get({ ...keys, name }) ?? null,
          ) ?? [],
      ),
    instance: () => known.get("instance", "", () => lookups.instance.get() ?? null),
    /** The endpoints that are not disabled. */
    webhooks: (keys: Keys) => known.get("webhook", scopeKey(keys), () => lookups.webhooks.all(keys)),
    webhook: (keys: Keys, id: string) => lookups.webhook.get({ ...keys, id }) ?? null,
    delivery: (keys: Keys, id: string) => lookups.delivery.get({ ...keys, id }) ?? null,
    /** Whether anybody of the organisation has a passkey that counts for the threshold. */
    hasPasskey: (keys: Keys) =>
      known.get("passkey", keys.organisationId, () => Boolean(lookups.countingPasskey.get(keys)?.id)),
  };
}

type Directory = ReturnType<typeof createDirectory>;
type Lookups = ReturnType<typeof prepareLedgerLookups>;

/** What the administration's commands name. */
const createLoadDirectory =
  (lookups: Lookups, directory: Directory) =>
  (keys: Keys, needs: Needs, snapshot: Loading): void => {
    if (needs.organisation) snapshot.organisation = directory.organisation(keys);
    if (needs.agentId !== undefined) {
      snapshot.agent = directory.agent(keys, needs.agentId);
      snapshot.session = lookups.newestSession.get({ agentId: needs.agentId }) ?? null;
    }
    if (needs.sessionId !== undefined) {
      snapshot.session = lookups.session.get({ id: needs.sessionId }) ?? null;
    }
    if (needs.apiKeyId !== undefined) snapshot.apiKey = directory.apiKey(keys, needs.apiKeyId);
    if (needs.balanceOf !== undefined)
      snapshot.balance = balanceOrNull(lookups.balance.get({ ...keys, asset: needs.balanceOf }));
    if (needs.instance) snapshot.instance = directory.instance();
    if (needs.webhookId !== undefined) snapshot.webhook = directory.webhook(keys, needs.webhookId);
    if (needs.deliveryId !== undefined) snapshot.delivery = directory.delivery(keys, needs.deliveryId);
    if (needs.schemaNames) snapshot.schemas = directory.schemas(keys, needs.schemaNames);
    if (needs.policyNamed) {
      const { agentId, name } = needs.policyNamed;
      snapshot.policyNewest = directory.policyNamed(keys, agentId, name);
    }
  };

const scopeKey = ({ organisationId, mode }: Keys): string => `${organisationId} ${mode}`;

export function createLoad(tables: Tables, known: KnownRows): Load {
  const lookups = { ...prepareLedgerLookups(tables), ...preparePurchaseLookups(tables) };
  const directory = createDirectory(tables, known);
  const loadPeople = createLoadPeople(tables);
  const loadDirectory = createLoadDirectory(lookups, directory);

  /** A warrant and all that a move of it touches. */
  function loadWarrant(keys: Keys, id: string): Partial<Snapshot> {
    const row = lookups.warrant.get({ ...keys, id });
    if (!row) return {};
    const escalation =
      row.state === "held" || row.state === "verifying" ? undefined : lookups.escalation.get({ ...keys, id });
    return {
      webhooks: directory.webhooks(keys),
      warrant: row,
      agent: directory.agent(keys, row.agentId),
      session: row.sessionId === null ? null : (lookups.session.get({ id: row.sessionId }) ?? null),
      policy: directory.policy(keys, row.policyId),
      escalation: escalation ?? null,
      purchase: purchaseOrNull(lookups.purchaseOfWarrant.get({ warrantId: id })),
    };
  }

  /** A purchase, with its warrant where there is one. */
  function loadPurchase(keys: Keys, id: string): Partial<Snapshot> {
    const purchase = purchaseOrNull(lookups.purchase.get({ ...keys, id }));
    const warrant = purchase?.warrantId ? loadWarrant(keys, purchase.warrantId) : {};
    return { ...warrant, purchase };
  }

  function loadOpening(
    keys: Keys,
    opening: NonNullable<Needs["opening"]>,
    callerAgentId: string | undefined,
  ): Partial<Snapshot> {
    const named = directory.policy(keys, opening.policyId);
    const agent = directory.agent(keys, opening.agentId);
    const verifier = directory.verifier(keys, opening.verifierId);
    const savedSchema = verifier?.type === "json.schema" ? [String(verifier.config.schema)] : [];
    return {
      instance: directory.instance(),
      webhooks: directory.webhooks(keys),
      organisation: directory.organisation(keys),
      hasPasskey: directory.hasPasskey(keys),
      agent,
      session: agent === null ? null : (lookups.newestSession.get({ agentId: agent.id }) ?? null),
      policy: named,
      policyNewest: named && directory.policyNamed(keys, named.agentId, named.name),
      agentPolicy: agent && directory.newestPolicy(keys, agent.id),
      callerAgentPolicy:
        named && callerAgentId !== undefined ? directory.newestPolicy(keys, callerAgentId) : null,
      organisationPolicy: directory.newestPolicy(keys, null),
      verifier,
      schemas: directory.schemas(keys, [...new Set([...opening.schemaNames, ...savedSchema])]),
      balance: balanceOrNull(lookups.balance.get({ ...keys, asset: opening.asset })),
    };
  }

  function loadEscalation(keys: Keys, id: string): Partial<Snapshot> {
    const row = lookups.escalation.get({ ...keys, id });
    return row ? { ...loadWarrant(keys, row.warrantId), escalation: row } : {};
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
    if (needs.purchaseId !== undefined) Object.assign(snapshot, loadPurchase(keys, needs.purchaseId));
    if (needs.authorizationsOf) {
      const open = lookups.openAuthorizations.get(needs.authorizationsOf)?.sum ?? 0n;
      snapshot.openAuthorizations = open + (lookups.paidSince.get(needs.authorizationsOf)?.sum ?? 0n);
    }
    if (needs.escalationId !== undefined) Object.assign(snapshot, loadEscalation(keys, needs.escalationId));
    loadDirectory(keys, needs, snapshot);
    loadPeople(keys, needs, snapshot);
    if (needs.callerAgentId !== undefined) snapshot.callerAgent = directory.agent(keys, needs.callerAgentId);
    return snapshot;
  };
}
