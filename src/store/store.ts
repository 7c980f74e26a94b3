import type { Agent } from "../core/agent.ts";
import type {
  AdminAct,
  ApiKey,
  AuthSession,
  Deposit,
  Instance,
  NamedSchema,
  Organisation,
  Passkey,
  PasskeyApproval,
  PasswordReset,
  SavedVerifier,
  User,
} from "../core/directory.ts";
import type { Refusal } from "../core/errors.ts";
import type { Policy } from "../core/policy.ts";
import type { Balance, Legs } from "../core/postings.ts";
import type { Check, Escalation } from "../core/records.ts";
import type { Mode } from "../core/roles.ts";
import type { SpendSession } from "../core/session.ts";
import type { TraceEntry } from "../core/trace.ts";
import type { State, Warrant } from "../core/warrant.ts";
import type { WebhookDelivery, WebhookEndpoint } from "../core/webhook.ts";

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

export type RecordedOutcome = { readonly status: number; readonly body: string };

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
  | { readonly kind: "delivery"; readonly row: WebhookDelivery }
  | { readonly kind: "policy"; readonly row: Policy }
  | { readonly kind: "verifier"; readonly row: SavedVerifier }
  | { readonly kind: "schema"; readonly row: NamedSchema }
  | { readonly kind: "check"; readonly row: Check }
  | { readonly kind: "deposit"; readonly row: Deposit }
  | { readonly kind: "adminAct"; readonly row: AdminAct };

export type WarrantFilter = { readonly state?: State; readonly agentId?: string };

/** Reads that are not part of a command. They never see half a Change, and never hold up the writer. */
export interface Reader {
  /** Reads from here on see whatever was committed before, by whichever process. Called as a request arrives. */
  refresh(): void;
  /** The time in the newest id of those that order what they name, epoch milliseconds; -1 where there is none. */
  newestIdTime(): number;
  readonly warrants: {
    get(scope: Scope, id: string): Warrant | null;
    /** Whoever's it is: for the public receipt. */
    find(id: string): Warrant | null;
    /** Soonest deadline first; `offset` rows are skipped. */
    byDeadline(scope: Scope, filter: WarrantFilter, offset: number, limit: number): readonly Warrant[];
    /** Newest first: those older than `olderThan`, or the nearest ones newer than `newerThan`. */
    byCreation(
      scope: Scope,
      filter: WarrantFilter,
      cursor: { readonly olderThan?: string; readonly newerThan?: string },
      limit: number,
    ): readonly Warrant[];
    /** Held warrants past their deadline, of all organisations, soonest first. */
    overdue(now: number, limit: number): readonly Warrant[];
    overdueCount(now: number): number;
    /** How many there are in each state, of all organisations. */
    countsByState(): Readonly<Partial<Record<State, number>>>;
    /** Those whose check is running or was interrupted, of all organisations, after an id, in order of id. */
    verifying(afterId: string, limit: number): readonly Warrant[];
    ofAgent(agentId: string, state: State, limit: number): readonly Warrant[];
  };
  readonly trace: { of(warrantId: string): readonly TraceEntry[] };
  readonly checks: { of(warrantId: string): readonly Check[] };
  /** Those that wait for a person first, the longest of them before the others. */
  readonly escalations: {
    list(scope: Scope, limit: number): readonly Escalation[];
    /** Those that wait for a person and were raised before a time, of all organisations, the longest waiting first. */
    waiting(before: number, after: Escalation | null, limit: number): readonly Escalation[];
    /** How many wait, of all organisations, and since when the first of them; null where none does. */
    waitingCount(): { readonly count: number; readonly oldestAt: number | null };
  };
  readonly agents: {
    get(id: string): Agent | null;
    list(scope: Scope): readonly Agent[];
    /** Killed ones that still hold warrants, and active ones that still have frozen ones, of all organisations. */
    withStatusToFollow(limit: number): readonly Agent[];
    liveSession(agentId: string, now: number): SpendSession | null;
    /** By the session's id, whoever's it is. */
    session(id: string): SpendSession | null;
    countsByState(agent: Agent): Readonly<Partial<Record<State, number>>>;
    ownPolicy(agentId: string): Policy | null;
  };
  readonly policies: {
    list(organisationId: string): readonly Policy[];
    ofOrganisation(organisationId: string): Policy | null;
  };
  readonly verifiers: { list(organisationId: string): readonly SavedVerifier[] };
  readonly schemas: { named(organisationId: string, names: readonly string[]): readonly NamedSchema[] };
  readonly organisations: { get(id: string): Organisation | null; list(): readonly Organisation[] };
  readonly users: {
    /** Also somebody who was removed. */
    get(id: string): User | null;
    byEmail(email: string): User | null;
    list(organisationId: string): readonly User[];
  };
  readonly passkeys: { get(id: string): Passkey | null; of(userId: string): readonly Passkey[] };
  readonly passwordResets: { byHash(tokenHash: string): PasswordReset | null };
  readonly apiKeys: {
    byHash(secretHash: string): ApiKey | null;
    get(id: string): ApiKey | null;
    list(scope: Scope): readonly ApiKey[];
  };
  /** Newest first, those older than the given one. */
  readonly adminActs: {
    list(organisationId: string, olderThan: string | null, limit: number): readonly AdminAct[];
  };
  readonly authSessions: { byHash(tokenHash: string): AuthSession | null };
  /** Null before the first start. */
  readonly instance: { get(): Instance | null };
  readonly webhooks: {
    get(id: string): WebhookEndpoint | null;
    list(scope: Scope): readonly WebhookEndpoint[];
    /** Of all organisations, those that have something to deliver at this time. */
    withWork(now: number): readonly WebhookEndpoint[];
  };
  readonly deliveries: {
    get(id: string): WebhookDelivery | null;
    /** The most recent ones, of all endpoints or of one, newest first. */
    list(scope: Scope, limit: number, webhookId?: string): readonly WebhookDelivery[];
    /**
     * Those of an endpoint that are due, the longest waiting first. A warrant's later event is not due before the first
     * attempt of its earlier one has ended.
     */
    due(webhookId: string, now: number, limit: number): readonly WebhookDelivery[];
    /** Whose attempt should have ended by this time. */
    cutOff(time: number, limit: number): readonly WebhookDelivery[];
    /** Whose attempt would end, or begin, after these times. */
    beyond(claimedUntil: number, nextAttemptAt: number, limit: number): readonly WebhookDelivery[];
    /** An endpoint's exhausted ones that were made since this time, and never delivered after all, oldest first. */
    exhaustedSince(webhookId: string, since: number, limit: number): readonly WebhookDelivery[];
    /** How many wait for an attempt or are under way. */
    waiting(): number;
    /** When the next attempt of any is due, epoch milliseconds; null where none is. */
    nextAttemptAt(): number | null;
  };
  readonly balances: {
    /** Of all organisations together. */
    totals(): readonly { readonly mode: Mode; readonly asset: string; readonly balance: Balance }[];
    list(scope: Scope): readonly { readonly asset: string; readonly balance: Balance }[];
  };
  /** Every disagreement in the books, one message each (decisions.md, `holdfast audit`). */
  audit(): readonly string[];
}
