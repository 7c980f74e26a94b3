import type { Agent } from "../core/agent.ts";
import type { ApiKey } from "../core/api-key.ts";
import type { AuditEntry } from "../core/audit-entry.ts";
import type { AuthSession } from "../core/auth-session.ts";
import type { Check } from "../core/check.ts";
import type { Deposit } from "../core/deposit.ts";
import type { Refusal } from "../core/errors.ts";
import type { Escalation } from "../core/escalation.ts";
import type { Instance } from "../core/instance.ts";
import type { NamedSchema } from "../core/named-schema.ts";
import type { Organisation } from "../core/organisation.ts";
import type { Passkey, PasskeyApproval } from "../core/passkey.ts";
import type { PasswordReset } from "../core/password-reset.ts";
import type { Policy } from "../core/policy.ts";
import type { Balance, Legs } from "../core/postings.ts";
import type { Mode } from "../core/roles.ts";
import type { SpendSession } from "../core/session.ts";
import type { TraceEntry } from "../core/trace.ts";
import type { User } from "../core/user.ts";
import type { SavedVerifier } from "../core/verifier.ts";
import type { Warrant } from "../core/warrant.ts";
import type { WebhookDelivery, WebhookEndpoint } from "../core/webhook.ts";
import type { Purchase } from "../core/x402/purchase.ts";
import type { Reader } from "./reader.ts";

/**
 * THE SEAM between what Holdfast decides and where it is kept, in domain types.
 *
 * A command says what it needs, as ids, and how to decide. The engine loads that, lets it decide inside the transaction, and
 * applies the Change: all of it or none. The answer comes back when the Change is durable.
 */
export interface Store {
  execute<Answer>(command: Command<Answer>): Promise<Answer | Refusal>;
  /** Deletes what nobody needs any more, at most `rowsMax` rows of a kind; how many it deleted. */
  forget(retention: Retention, rowsMax: number): Promise<number>;
  /** Writes to the disk what changes nothing. Rejects where the ledger cannot be written, as where the disk is full. */
  probe(): Promise<void>;
  readonly reader: Reader;
  /** Commits what is queued, then closes. */
  close(): Promise<void>;
}

/** Rows older than these times are forgotten; epoch milliseconds. */
export type Retention = {
  /** Keys with an outcome, by when they were bound. */
  readonly idempotencyKeysBefore: number;
  /** Sign-ins, one-time links and approvals, by when they ended. */
  readonly endedBefore: number;
  /** Deliveries that will not be tried again, by when they were made. */
  readonly deliveriesBefore: number;
};

/** Whose world a command or a read is in. */
export type Scope = { readonly organisationId: string; readonly mode: Mode };

export type Command<Answer> = {
  readonly scope: Scope;
  readonly needs: Needs;
  /** Pure: an engine may run it again on a fresher snapshot. */
  readonly decide: (snapshot: Snapshot) => Decision<Answer>;
};

/** A refusal may carry a Change: a late verify expires the warrant and is still refused. */
export type Decision<Answer> = { readonly answer: Answer | Refusal; readonly change?: Change };

/** What to load. Everything is looked up inside the command's scope: what is outside it is not there. */
export type Needs = {
  readonly idempotencyKey?: string;
  /** The warrant and all that a move of it touches: agent, session, policy, newest escalation. */
  readonly warrantId?: string;
  /** By the escalation's own id or its warrant's; loads the warrant as above. */
  readonly escalationId?: string;
  /** What an open looks at. */
  readonly opening?: {
    readonly asset: string;
    readonly agentId: string | null;
    readonly policyId: string | null;
    readonly verifierId: string | null;
    readonly schemaNames: readonly string[];
  };
  readonly organisation?: boolean;
  /** With its newest session. */
  readonly agentId?: string;
  readonly sessionId?: string;
  /** The agent of the API key that calls. */
  readonly callerAgentId?: string;
  readonly apiKeyId?: string;
  readonly balanceOf?: string;
  /** The person who calls: of the scope's organisation, and not removed. */
  readonly callerUserId?: string;
  readonly userEmail?: string;
  /** A person of the scope's organisation who is acted upon. */
  readonly userId?: string;
  /** Whether the organisation has an owner besides this person. */
  readonly otherOwnerThan?: string;
  readonly passkeyId?: string;
  /** All passkeys of a person. */
  readonly passkeysOf?: string;
  readonly approvalHash?: string;
  readonly passwordResetHash?: string;
  readonly webhookId?: string;
  readonly deliveryId?: string;
  readonly instance?: boolean;
  /** With its warrant, and all that a move of it touches. */
  readonly purchaseId?: string;
  /** What a wallet has signed of a token and may still be taken. */
  readonly authorizationsOf?: {
    readonly payer: string;
    readonly chainId: number;
    readonly contract: string;
    /** When the wallet's balance was read: what was answered since is not in it. */
    readonly since: number;
  };
  readonly authSessionHash?: string;
  /** Whether anyone but this person could decide a dispute. */
  readonly secondPersonThan?: string;
  readonly schemaNames?: readonly string[];
  /** The newest policy row of a name, of an agent or (null) of the organisation. */
  readonly policyNamed?: { readonly agentId: string | null; readonly name: string };
};

/** What was loaded; null, or empty, where it is not there or was not asked for. */
export type Snapshot = {
  readonly idempotency: IdempotencyRecord | null;
  readonly organisation: Organisation | null;
  readonly warrant: Warrant | null;
  readonly agent: Agent | null;
  /** The agent of the API key that calls. */
  readonly callerAgent: Agent | null;
  /** For an open the agent's newest session, else the one that the warrant was charged to. */
  readonly session: SpendSession | null;
  /** For an open the one named by id, else the one that the warrant runs under, else the newest of the name. */
  readonly policy: Policy | null;
  /** The newest row of the named policy's name. */
  readonly policyNewest: Policy | null;
  readonly agentPolicy: Policy | null;
  readonly callerAgentPolicy: Policy | null;
  readonly organisationPolicy: Policy | null;
  readonly verifier: SavedVerifier | null;
  readonly schemas: readonly NamedSchema[];
  readonly balance: Balance | null;
  readonly escalation: Escalation | null;
  readonly callerUser: User | null;
  readonly user: User | null;
  readonly hasSecondPerson: boolean;
  readonly hasOtherOwner: boolean;
  /** For an open: whether anybody of the organisation has a passkey that counts for the threshold. */
  readonly hasPasskey: boolean;
  readonly passkey: Passkey | null;
  /** In the order in which they were registered. */
  readonly passkeys: readonly Passkey[];
  readonly approval: PasskeyApproval | null;
  readonly passwordReset: PasswordReset | null;
  /** The endpoints of the scope that are not disabled: with a warrant, and for an open. */
  readonly webhooks: readonly WebhookEndpoint[];
  readonly webhook: WebhookEndpoint | null;
  /** The one named, else the one that the warrant was opened for. */
  readonly purchase: Purchase | null;
  readonly openAuthorizations: bigint;
  readonly delivery: WebhookDelivery | null;
  /** Also for an open. */
  readonly instance: Instance | null;
  readonly authSession: AuthSession | null;
  readonly apiKey: ApiKey | null;
};

/** The outcome that an Idempotency-Key is bound to; null while the request is running. */
export type IdempotencyRecord = {
  readonly key: string;
  readonly fingerprint: string;
  /** The warrant whose check is running under the key. */
  readonly warrantId: string | null;
  readonly outcome: RecordedOutcome | null;
  readonly createdAt: number;
};

export type RecordedOutcome = {
  readonly status: number;
  readonly body: string;
  /** SHA-256 of what the answer's `body` field is filled with: kept once, by hash (decisions.md, x402). Null where there is none. */
  readonly contentHash: string | null;
};

/** Bytes that are kept once, by their SHA-256. */
export type Content = { readonly hash: string; readonly bytes: Uint8Array };

/** Everything that a command writes, as data. */
export type Change = {
  readonly warrant?: WarrantWrite;
  readonly posting?: Posting;
  readonly trace?: TraceEntry;
  readonly idempotency?: IdempotencyRecord;
  /** Frees the keys in flight that wait for this warrant's check. */
  readonly freesKeysOf?: string;
  /** Ends a person's sign-ins, but for the one named. */
  readonly endsSignInsOf?: {
    readonly userId: string;
    readonly exceptTokenHash: string | null;
    readonly at: number;
  };
  /** Ends a person's unused reset links, before the rows are written. */
  readonly voidsPasswordResetsOf?: { readonly userId: string; readonly at: number };
  readonly removesPasskeys?: readonly string[];
  /** A purchase of which nothing was held, and its key with it. */
  readonly forgetsPurchase?: Purchase;
  readonly rows?: readonly Row[];
};

/** `before` is null on the first transition. The counts per state and agent follow from it. */
export type WarrantWrite = { readonly before: Warrant | null; readonly after: Warrant };

export type Posting = {
  readonly legs: Legs;
  readonly asset: string;
  readonly warrantId: string | null;
  readonly depositId: string | null;
  /** Who is credited with the `paid` leg. */
  readonly payee: string | null;
  readonly recordedAt: number;
};

/** A row as it is after the command. Those of the second group are never changed once written. */
export type Row =
  | { readonly kind: "agent"; readonly row: Agent }
  | { readonly kind: "spendSession"; readonly row: SpendSession }
  | { readonly kind: "escalation"; readonly row: Escalation }
  | { readonly kind: "apiKey"; readonly row: ApiKey }
  | { readonly kind: "authSession"; readonly row: AuthSession }
  | { readonly kind: "organisation"; readonly row: Organisation }
  | { readonly kind: "user"; readonly row: User }
  | { readonly kind: "passkey"; readonly row: Passkey }
  | { readonly kind: "passkeyApproval"; readonly row: PasskeyApproval }
  | { readonly kind: "passwordReset"; readonly row: PasswordReset }
  | { readonly kind: "instance"; readonly row: Instance }
  | { readonly kind: "webhook"; readonly row: WebhookEndpoint }
  | { readonly kind: "purchase"; readonly row: Purchase }
  | { readonly kind: "content"; readonly row: Content }
  | { readonly kind: "delivery"; readonly row: WebhookDelivery }
  | { readonly kind: "policy"; readonly row: Policy }
  | { readonly kind: "verifier"; readonly row: SavedVerifier }
  | { readonly kind: "schema"; readonly row: NamedSchema }
  | { readonly kind: "check"; readonly row: Check }
  | { readonly kind: "deposit"; readonly row: Deposit }
  | { readonly kind: "auditEntry"; readonly row: AuditEntry };
