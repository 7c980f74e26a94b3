import type { Agent } from "../core/agent.ts";
import type { ApiKey } from "../core/api-key.ts";
import type { AuthSession } from "../core/auth-session.ts";
import type { Deposit } from "../core/deposit.ts";
import type { Escalation } from "../core/escalation.ts";
import type { Instance } from "../core/instance.ts";
import type { NamedSchema } from "../core/named-schema.ts";
import type { Organisation } from "../core/organisation.ts";
import type { Passkey, PasskeyApproval } from "../core/passkey.ts";
import type { PasswordReset } from "../core/password-reset.ts";
import type { Policy } from "../core/policy.ts";
import type { Balance } from "../core/postings.ts";
import type { SpendSession } from "../core/session.ts";
import type { TraceStep } from "../core/trace.ts";
import type { User } from "../core/user.ts";
import type { SavedVerifier } from "../core/verifier.ts";
import type { Warrant } from "../core/warrant.ts";
import type { WebhookDelivery, WebhookEndpoint } from "../core/webhook.ts";
import type { Purchase } from "../core/x402/purchase.ts";
import type { IdempotencyKey } from "./rows.ts";

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
  /** The warrant that a replay of the key answers, as it is now; null where its answer is something else. */
  readonly replayedWarrant: Need<From<"idempotencyKey">, Warrant | null>;
  /** The move after which the key's request was answered with that warrant. */
  readonly replayedStep: Need<From<"idempotencyKey">, TraceStep | null>;
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
  /** The deposit of that reference, of which each asset of a scope has one. */
  readonly depositReferenced: Need<DepositReference | null, Deposit | null>;
  readonly webhook: Need<string, WebhookEndpoint | null>;
  readonly delivery: Need<string, WebhookDelivery | null>;
};

export type NeedName = keyof NeedTable;

export type DepositReference = { readonly asset: string; readonly reference: string };

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
