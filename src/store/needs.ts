import type { Agent } from "../core/agent.ts";
import type { ApiKey } from "../core/api-key.ts";
import type { AuthSession } from "../core/auth-session.ts";
import type { Escalation } from "../core/escalation.ts";
import type { Instance } from "../core/instance.ts";
import type { NamedSchema } from "../core/named-schema.ts";
import type { Organisation } from "../core/organisation.ts";
import type { Passkey, PasskeyApproval } from "../core/passkey.ts";
import type { PasswordReset } from "../core/password-reset.ts";
import type { Policy } from "../core/policy.ts";
import type { Balance } from "../core/postings.ts";
import type { SpendSession } from "../core/session.ts";
import type { User } from "../core/user.ts";
import type { SavedVerifier } from "../core/verifier.ts";
import type { Warrant } from "../core/warrant.ts";
import type { WebhookDelivery, WebhookEndpoint } from "../core/webhook.ts";
import type { Purchase } from "../core/x402/purchase.ts";
import type { IdempotencyKey } from "./rows.ts";
import type { Scope } from "./store.ts";

/** What a need is asked with, and what is found. Null is asked for nothing, and finds nothing. */
type Need<Ask, Found> = { readonly ask: Ask; readonly found: Found };

/** A need that follows from another one that the command names: an agent from its warrant, say. */
export type From<Source extends NeedName> = { readonly from: Source };

/**
 * Everything that a command can ask for, by name. One name has one meaning. What is found is of the command's scope:
 * a row of another organisation or mode is not there. Null, false and an empty list mean that it is not there.
 */
export type NeedTable = {
  // Who calls
  readonly callerKey: Need<string | null, ApiKey | null>;
  readonly callerAgent: Need<string | null, Agent | null>;
  /** Not somebody who was removed. */
  readonly callerUser: Need<string | null, User | null>;
  /** By the hash of the cookie's token. */
  readonly callerSession: Need<string | null, AuthSession | null>;

  // The request's key
  readonly idempotencyKey: Need<string, IdempotencyKey | null>;
  /** The key in flight that this warrant's check, or this purchase, ends. */
  readonly heldKey: Need<string, IdempotencyKey | null>;

  // A warrant, and what a move of it touches
  readonly warrant: Need<string | From<"escalation"> | From<"purchase">, Warrant | null>;
  readonly warrantAgent: Need<From<"warrant">, Agent | null>;
  /** The session that the warrant was charged to. */
  readonly warrantSession: Need<From<"warrant">, SpendSession | null>;
  /** The policy version that the warrant is pinned to. */
  readonly warrantPolicy: Need<From<"warrant">, Policy | null>;
  /** The purchase that the warrant was opened for. */
  readonly warrantPurchase: Need<From<"warrant">, Purchase | null>;
  /** The escalation that waits for a person; a warrant has one at most. */
  readonly warrantEscalation: Need<From<"warrant">, Escalation | null>;
  /** By its own id; or by its warrant's, then the newest of the warrant. */
  readonly escalation: Need<string | null, Escalation | null>;
  /** The scope's endpoints that are not disabled. */
  readonly webhooks: Need<true, readonly WebhookEndpoint[]>;
  readonly purchase: Need<string, Purchase | null>;

  // What an open looks at
  readonly agent: Need<string | null, Agent | null>;
  /** The agent's newest session. */
  readonly agentSession: Need<From<"agent">, SpendSession | null>;
  /** The agent's own newest policy version, of whatever name. */
  readonly agentPolicy: Need<From<"agent">, Policy | null>;
  readonly callerAgentPolicy: Need<From<"callerAgent">, Policy | null>;
  /** The organisation's default: the newest policy version without an agent. */
  readonly organisationPolicy: Need<true, Policy | null>;
  /** One policy version. */
  readonly policy: Need<string | null, Policy | null>;
  /** The newest version of that policy's name. */
  readonly newestOfPolicy: Need<From<"policy">, Policy | null>;
  readonly verifier: Need<string | null, SavedVerifier | null>;
  /** The schema that the saved verifier's clause names. */
  readonly verifierSchema: Need<From<"verifier">, NamedSchema | null>;
  /** Those of the names that are there, in the names' order. */
  readonly schemas: Need<readonly string[], readonly NamedSchema[]>;
  readonly balance: Need<string, Balance | null>;
  /** Whether anybody of the organisation has a passkey that counts for the threshold. */
  readonly hasPasskey: Need<true, boolean>;
  /** What a wallet has signed of a token and may still be taken, in the token's units. */
  readonly openAuthorizations: Need<WalletToken | null, bigint>;

  // People
  /** A person who is acted upon; not somebody who was removed. */
  readonly user: Need<string, User | null>;
  /** Of any organisation: an e-mail is unique in the instance. */
  readonly userByEmail: Need<string, User | null>;
  /** Whether the organisation has an owner besides this person. */
  readonly hasOtherOwner: Need<string, boolean>;
  /** Whether anybody but this person could decide a dispute. */
  readonly hasSecondPerson: Need<string, boolean>;
  /** Of any organisation: an authenticator gives each passkey an id of its own. */
  readonly passkey: Need<string, Passkey | null>;
  /** All passkeys of a person, in the order of their registration. */
  readonly passkeys: Need<string, readonly Passkey[]>;
  /** By the hash of the approval's token. */
  readonly passkeyApproval: Need<string | null, PasskeyApproval | null>;
  /** A person's sign-ins that have not ended yet when they are read, in the order of their tokens' hashes. */
  readonly userSessions: Need<string, readonly AuthSession[]>;
  /** By the hash of the link's token. */
  readonly passwordReset: Need<string, PasswordReset | null>;
  /** A person's reset links that nobody used. */
  readonly unusedPasswordResets: Need<string, readonly PasswordReset[]>;

  // What is administered
  readonly apiKey: Need<string, ApiKey | null>;
  /** By its id. The caller has checked whose it is. */
  readonly spendSession: Need<string, SpendSession | null>;
  /** The newest version of a policy's name, of an agent or (null) of the organisation. */
  readonly policyNamed: Need<PolicyName, Policy | null>;
  readonly webhook: Need<string, WebhookEndpoint | null>;
  readonly delivery: Need<string, WebhookDelivery | null>;
};

export type NeedName = keyof NeedTable;

export type PolicyName = { readonly agentId: string | null; readonly name: string };

export type WalletToken = {
  readonly payer: string;
  readonly chainId: number;
  readonly contract: string;
  /** When the wallet's balance was read, epoch milliseconds: what was paid since is not in it. */
  readonly since: number;
};

/** What a command asks for. */
export type Needs = { readonly [Name in NeedName]?: NeedTable[Name]["ask"] };

/** What is found: exactly what the needs name. A need that may be left out is not found at all. */
export type Found<N extends Needs> = {
  readonly [Name in keyof N & NeedName]: undefined extends N[Name] ? never : NeedTable[Name]["found"];
};

/** What every command has. */
export type Always = {
  readonly instance: Instance;
  /** The time that records carry, epoch milliseconds: the clock's, or that of the last commit where the clock is behind it. */
  readonly recordedAt: number;
};

/** What a command of a scope decides from. */
export type Snapshot<N extends Needs> = Found<N> & Always & { readonly organisation: Organisation };

/** Needs of which each follows from a need that is named too: among them, or among `All`. */
export type Complete<N extends Needs, All extends Needs = N> = {
  [Name in keyof N]: N[Name] extends From<infer Source>
    ? Source extends keyof All
      ? N[Name]
      : never
    : N[Name];
};

/** The rows and indexes that needs are looked up in: what is not known yet is noted as missing, and gives undefined. */
export type View = {
  row<Kind extends LoadedKind>(kind: Kind, key: string): LoadedRows[Kind] | null | undefined;
  index<Name extends IndexName>(
    name: Name,
    ...of: IndexTable[Name]["of"]
  ): IndexTable[Name]["gives"] | undefined;
};

/** Kinds of rows that are looked up by their key. */
export type LoadedRows = {
  readonly agent: Agent;
  readonly apiKey: ApiKey;
  readonly authSession: AuthSession;
  /** Kept by the engine from the postings. */
  readonly balance: Balance;
  readonly delivery: WebhookDelivery;
  readonly escalation: Escalation;
  readonly idempotencyKey: IdempotencyKey;
  readonly instance: Instance;
  readonly organisation: Organisation;
  readonly passkey: Passkey;
  readonly passkeyApproval: PasskeyApproval;
  readonly passwordReset: PasswordReset;
  readonly policy: Policy;
  readonly purchase: Purchase;
  readonly schema: NamedSchema;
  readonly spendSession: SpendSession;
  readonly user: User;
  readonly verifier: SavedVerifier;
  readonly warrant: Warrant;
  readonly webhook: WebhookEndpoint;
};
export type LoadedKind = keyof LoadedRows;

type Index<Of extends readonly (string | number | null)[], Gives> = {
  readonly of: Of;
  readonly gives: Gives;
};
type Id = string | null;
type Ids = readonly string[];

/** What is looked up otherwise than by a row's key: it gives the keys of rows, or a fact. */
export type IndexTable = {
  /** Of an agent, by the order of commits. */
  readonly newestSession: Index<[agentId: string], Id>;
  /** By the id of an escalation or of its warrant, by the order of commits. */
  readonly newestEscalation: Index<[id: string], Id>;
  readonly unresolvedEscalation: Index<[warrantId: string], Id>;
  readonly purchaseOfWarrant: Index<[warrantId: string], Id>;
  readonly enabledWebhooks: Index<[organisationId: string, mode: string], Ids>;
  /** The newest policy version of an agent, or (null) of the organisation itself, by the order of commits. */
  readonly newestPolicy: Index<[organisationId: string, agentId: string | null], Id>;
  readonly newestPolicyNamed: Index<[organisationId: string, agentId: string | null, name: string], Id>;
  readonly schemaNamed: Index<[organisationId: string, name: string], Id>;
  readonly countingPasskey: Index<[organisationId: string], boolean>;
  readonly keyHeldBy: Index<[holder: string], Id>;
  readonly openAuthorizations: Index<
    [payer: string, chainId: number, contract: string, since: number],
    bigint
  >;
  readonly userByEmail: Index<[email: string], Id>;
  readonly otherOwner: Index<[organisationId: string, userId: string], boolean>;
  readonly secondPerson: Index<[organisationId: string, userId: string], boolean>;
  readonly passkeysOf: Index<[userId: string], Ids>;
  readonly sessionsOf: Index<[userId: string], Ids>;
  readonly unusedResetsOf: Index<[userId: string], Ids>;
};
export type IndexName = keyof IndexTable;

type Looks = {
  readonly [Name in NeedName]: (
    view: View,
    scope: Scope,
    ask: Exclude<NeedTable[Name]["ask"], null>,
    /** The row that the need follows from, where it does. */
    source: unknown,
  ) => NeedTable[Name]["found"] | undefined;
};

type OfOrganisation = { readonly organisationId: string };
type OfMode = OfOrganisation & { readonly mode: Scope["mode"] };

/** The row where it belongs to the scope's organisation; else as if it were not there. */
const inOrganisation = <Row extends OfOrganisation>(
  row: Row | null | undefined,
  scope: Scope,
): Row | null | undefined => (row && row.organisationId !== scope.organisationId ? null : row);

const inScope = <Row extends OfMode>(row: Row | null | undefined, scope: Scope): Row | null | undefined =>
  row && (row.organisationId !== scope.organisationId || row.mode !== scope.mode) ? null : row;

/** The row whose key an index gave. */
const rowOf = <Kind extends LoadedKind>(
  view: View,
  kind: Kind,
  key: string | null | undefined,
): LoadedRows[Kind] | null | undefined => (key == null ? (key as null | undefined) : view.row(kind, key));

/** All rows whose keys an index gave; undefined while one of them is missing. */
function rowsOf<Kind extends LoadedKind>(
  view: View,
  kind: Kind,
  keys: readonly string[] | undefined,
): readonly LoadedRows[Kind][] | undefined {
  if (keys === undefined) return undefined;
  const rows = keys.map((key) => view.row(kind, key));
  return rows.includes(undefined) ? undefined : rows.filter((row) => row != null);
}

/** Somebody who was removed acts no more, and is not acted upon. */
const present = (user: User | null | undefined): User | null | undefined =>
  user && user.removedAt !== null ? null : user;

const agentIn = (view: View, scope: Scope, id: string) => inScope(view.row("agent", id), scope);
const keyIn = (view: View, scope: Scope, id: string) => inScope(view.row("apiKey", id), scope);
const policyIn = (view: View, scope: Scope, id: string | null | undefined) =>
  inOrganisation(rowOf(view, "policy", id), scope);
const userIn = (view: View, scope: Scope, id: string) => present(inOrganisation(view.row("user", id), scope));
const schemaIn = (view: View, scope: Scope, name: string) =>
  rowOf(view, "schema", view.index("schemaNamed", scope.organisationId, name));
const newestPolicyOf = (view: View, scope: Scope, agentId: string | null) =>
  policyIn(view, scope, view.index("newestPolicy", scope.organisationId, agentId));

/** How each need is looked up: the one table of needs. */
export const LOOKS: Looks = {
  callerKey: keyIn,
  callerAgent: agentIn,
  callerUser: userIn,
  callerSession: (view, _, hash) => view.row("authSession", hash),

  idempotencyKey: (view, scope, key) =>
    view.row("idempotencyKey", `${scope.organisationId} ${scope.mode} ${key}`),
  heldKey: (view, scope, holder) =>
    inScope(rowOf(view, "idempotencyKey", view.index("keyHeldBy", holder)), scope),

  warrant: (view, scope, ask, source) =>
    inScope(
      view.row(
        "warrant",
        typeof ask === "string" ? ask : ((source as Escalation | Purchase).warrantId ?? ""),
      ),
      scope,
    ),
  warrantAgent: (view, scope, _, source) => {
    const { agentId } = source as Warrant;
    return agentId === null ? null : agentIn(view, scope, agentId);
  },
  warrantSession: (view, _, __, source) => rowOf(view, "spendSession", (source as Warrant).sessionId),
  warrantPolicy: (view, scope, _, source) => policyIn(view, scope, (source as Warrant).policyId),
  warrantPurchase: (view, _, __, source) =>
    rowOf(view, "purchase", view.index("purchaseOfWarrant", (source as Warrant).id)),
  warrantEscalation: (view, _, __, source) =>
    rowOf(view, "escalation", view.index("unresolvedEscalation", (source as Warrant).id)),
  escalation: (view, scope, id) =>
    inScope(rowOf(view, "escalation", view.index("newestEscalation", id)), scope),
  webhooks: (view, { organisationId, mode }) =>
    rowsOf(view, "webhook", view.index("enabledWebhooks", organisationId, mode)),
  purchase: (view, scope, id) => inScope(view.row("purchase", id), scope),

  agent: agentIn,
  agentSession: (view, _, __, source) =>
    rowOf(view, "spendSession", view.index("newestSession", (source as Agent).id)),
  agentPolicy: (view, scope, _, source) => newestPolicyOf(view, scope, (source as Agent).id),
  callerAgentPolicy: (view, scope, _, source) => newestPolicyOf(view, scope, (source as Agent).id),
  organisationPolicy: (view, scope) => newestPolicyOf(view, scope, null),
  policy: policyIn,
  newestOfPolicy: (view, scope, _, source) => {
    const { agentId, name } = source as Policy;
    return policyIn(view, scope, view.index("newestPolicyNamed", scope.organisationId, agentId, name));
  },
  verifier: (view, scope, id) => inOrganisation(view.row("verifier", id), scope),
  verifierSchema: (view, scope, _, source) => {
    const { type, config } = source as SavedVerifier;
    return type === "json.schema" ? schemaIn(view, scope, String(config.schema)) : null;
  },
  schemas: (view, scope, names) => {
    const found = names.map((name) => schemaIn(view, scope, name));
    return found.includes(undefined) ? undefined : found.filter((schema) => schema != null);
  },
  balance: (view, { organisationId, mode }, asset) =>
    view.row("balance", balanceRowKey(organisationId, mode, asset)),
  hasPasskey: (view, { organisationId }) => view.index("countingPasskey", organisationId),
  openAuthorizations: (view, _, { payer, chainId, contract, since }) =>
    view.index("openAuthorizations", payer, chainId, contract, since),

  user: userIn,
  userByEmail: (view, _, email) => rowOf(view, "user", view.index("userByEmail", email)),
  hasOtherOwner: (view, { organisationId }, userId) => view.index("otherOwner", organisationId, userId),
  hasSecondPerson: (view, { organisationId }, userId) => view.index("secondPerson", organisationId, userId),
  passkey: (view, _, id) => view.row("passkey", id),
  passkeys: (view, _, userId) => rowsOf(view, "passkey", view.index("passkeysOf", userId)),
  passkeyApproval: (view, _, hash) => view.row("passkeyApproval", hash),
  userSessions: (view, _, userId) => rowsOf(view, "authSession", view.index("sessionsOf", userId)),
  passwordReset: (view, _, hash) => view.row("passwordReset", hash),
  unusedPasswordResets: (view, _, userId) =>
    rowsOf(view, "passwordReset", view.index("unusedResetsOf", userId)),

  apiKey: keyIn,
  spendSession: (view, _, id) => view.row("spendSession", id),
  policyNamed: (view, scope, { agentId, name }) =>
    policyIn(view, scope, view.index("newestPolicyNamed", scope.organisationId, agentId, name)),
  webhook: (view, scope, id) => inScope(view.row("webhook", id), scope),
  delivery: (view, scope, id) => inScope(view.row("delivery", id), scope),
};

/** What is found where nothing is asked for, or where the row that a need follows from is not there. */
export const NOTHING: { readonly [Name in NeedName]?: NeedTable[Name]["found"] } = { openAuthorizations: 0n };

export const balanceRowKey = (organisationId: string, mode: string, asset: string): string =>
  `${organisationId} ${mode} ${asset}`;
