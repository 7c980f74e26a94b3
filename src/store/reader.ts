import type { Agent } from "../core/agent.ts";
import type { ApiKey } from "../core/api-key.ts";
import type { AuditEntry } from "../core/audit-entry.ts";
import type { AuthSession } from "../core/auth-session.ts";
import type { Check } from "../core/check.ts";
import type { Escalation } from "../core/escalation.ts";
import type { Instance } from "../core/instance.ts";
import type { NamedSchema } from "../core/named-schema.ts";
import type { Organisation } from "../core/organisation.ts";
import type { Passkey } from "../core/passkey.ts";
import type { PasswordReset } from "../core/password-reset.ts";
import type { Policy } from "../core/policy.ts";
import type { Balance } from "../core/postings.ts";
import type { Mode } from "../core/roles.ts";
import type { SpendSession } from "../core/session.ts";
import type { TraceEntry } from "../core/trace.ts";
import type { User } from "../core/user.ts";
import type { SavedVerifier } from "../core/verifier.ts";
import type { State, Warrant } from "../core/warrant.ts";
import type { WebhookDelivery, WebhookEndpoint } from "../core/webhook.ts";
import type { Purchase } from "../core/x402/purchase.ts";

import type { Scope } from "./store.ts";

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
  readonly auditEntries: {
    list(organisationId: string, olderThan: string | null, limit: number): readonly AuditEntry[];
  };
  readonly authSessions: { byHash(tokenHash: string): AuthSession | null };
  /** Null before the first start. */
  readonly instance: { get(): Instance | null };
  readonly webhooks: {
    get(id: string): WebhookEndpoint | null;
    list(scope: Scope): readonly WebhookEndpoint[];
    /** Of all organisations, those that are not disabled, in order of id. */
    enabled(): readonly WebhookEndpoint[];
    /** Of all organisations, those that have something to deliver at this time. */
    withWork(now: number): readonly WebhookEndpoint[];
  };
  readonly purchases: {
    get(id: string): Purchase | null;
    /** Newest first, those older than the given one. */
    list(scope: Scope, olderThan: string | null, limit: number): readonly Purchase[];
    /** Those that have not ended, of all organisations, after an id, in order of id. */
    unfinished(afterId: string, limit: number): readonly Purchase[];
    /** Those whose payment is to be looked for by now; or only after `latest`, which a clock that was ahead has written. */
    toCheck(now: number, latest: number, limit: number): readonly Purchase[];
    /** How many have not ended; of how many the payment is to be looked for, and when the first of these is, epoch milliseconds. */
    waiting(): {
      readonly unfinished: number;
      readonly toCheck: number;
      readonly nextCheckAt: number | null;
    };
  };
  readonly contents: { get(hash: string): Uint8Array | null };
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
