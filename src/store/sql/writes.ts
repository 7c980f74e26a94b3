import { and, eq, sql } from "drizzle-orm";
import type { Tables } from "./database.ts";
import { messagingDeletions } from "./messaging-rows.ts";
import { payoutMovesOf } from "./payout-rows.ts";
import { appendedOf, digestOf, excludedOf, given, placeholdersOf } from "./rows.ts";
import { capsules } from "./tables/capsules.ts";
import * as directory from "./tables/directory.ts";
import * as ledger from "./tables/ledger.ts";
import { plannedNotices, pushSubscriptions } from "./tables/notices.ts";
import { contentSums, contents, purchases } from "./tables/purchases.ts";
import { deliveries, webhooks } from "./tables/webhooks.ts";

/** The statements that write, by name. `apply.ts` gives them their values. */

const { placeholder } = sql;

/** Rows of spending that can change: inserted, or updated. */
export function spendingRows(tables: Tables) {
  const { agents, apiKeys, spendSessions } = directory;
  const { escalations } = ledger;
  return {
    agent: () =>
      tables
        .insert(agents)
        .values(appendedOf(agents))
        .onConflictDoUpdate({
          target: agents.id,
          set: excludedOf(agents, "name", "status", "failureBudget", "failureCount", "mustBeNamed"),
        }),
    apiKey: () =>
      tables
        .insert(apiKeys)
        .values(placeholdersOf(apiKeys))
        .onConflictDoUpdate({
          target: apiKeys.id,
          set: excludedOf(apiKeys, "expiresAt", "lastUsedAt", "revokedAt"),
        }),
    spendSession: () =>
      tables
        .insert(spendSessions)
        .values(appendedOf(spendSessions))
        .onConflictDoUpdate({
          target: spendSessions.id,
          set: excludedOf(
            spendSessions,
            "amountSpent",
            "amountHeld",
            "heldAt",
            "warrantCount",
            "failureCount",
            "revokedAt",
          ),
        }),
    escalation: () =>
      tables
        .insert(escalations)
        .values(placeholdersOf(escalations))
        .onConflictDoUpdate({
          target: escalations.id,
          set: excludedOf(
            escalations,
            "reasonCodes",
            "status",
            "decision",
            "releasedBps",
            "note",
            "raisedBy",
            "resolvedBy",
            "resolvedAt",
          ),
        }),
  };
}

/** Rows of organisations and people that can change: inserted, or updated. */
export function peopleRows(tables: Tables) {
  const { authSessions, organisations, passkeyApprovals, passkeys, passwordResets, users } = directory;
  return {
    organisation: () =>
      tables
        .insert(organisations)
        .values(placeholdersOf(organisations))
        .onConflictDoUpdate({
          target: organisations.id,
          set: excludedOf(
            organisations,
            "name",
            "killSwitch",
            "passkeyThreshold",
            "hidesSpecs",
            "secondFactor",
            "messagingDecisions",
          ),
        }),
    user: () =>
      tables
        .insert(users)
        .values(placeholdersOf(users))
        .onConflictDoUpdate({
          target: users.id,
          set: excludedOf(users, "name", "role", "passwordHash", "passwordResetAt", "removedAt"),
        }),
    authSession: () =>
      tables
        .insert(authSessions)
        .values(placeholdersOf(authSessions))
        .onConflictDoUpdate({
          target: authSessions.tokenHash,
          set: excludedOf(authSessions, "mode", "expiresAt", "passkeyProved", "lastUsedAt"),
        }),
    passwordReset: () =>
      tables
        .insert(passwordResets)
        .values(placeholdersOf(passwordResets))
        .onConflictDoUpdate({
          target: passwordResets.tokenHash,
          set: excludedOf(passwordResets, "expiresAt", "usedAt"),
        }),
    passkey: () =>
      tables
        .insert(passkeys)
        .values(placeholdersOf(passkeys))
        .onConflictDoUpdate({
          target: passkeys.id,
          set: excludedOf(passkeys, "counter", "lastUsedAt"),
        }),
    passkeyApproval: () =>
      tables
        .insert(passkeyApprovals)
        .values(placeholdersOf(passkeyApprovals))
        .onConflictDoUpdate({
          target: passkeyApprovals.tokenHash,
          set: excludedOf(passkeyApprovals, "usedAt"),
        }),
  };
}

/** Purchases, and the contents that sellers delivered. */
export function purchaseRows(tables: Tables) {
  return {
    purchase: () =>
      tables
        .insert(purchases)
        .values(placeholdersOf(purchases))
        .onConflictDoUpdate({
          target: purchases.id,
          set: excludedOf(
            purchases,
            "phase",
            "quotedAmount",
            "quotedAsset",
            "quotedPayee",
            "timeoutSeconds",
            "pays",
            "warrantId",
            "payer",
            "chainId",
            "contract",
            "nonce",
            "validBefore",
            "header",
            "attempt",
            "known",
            "knownBy",
            "transaction",
            "responseStatus",
            "responseHash",
            "responseLastModifiedAt",
            "contentBytes",
            "answeredAt",
            "endedAt",
            "nextCheckAt",
            "chainSilentSince",
            "chainSaid",
            "acknowledgedAt",
          ),
        }),
    content: () => tables.insert(contents).values(placeholdersOf(contents)).onConflictDoNothing(),
  };
}

const INSTANCE_CHANGES = [
  ...(["baseUrl", "chainIds", "retentionMarks", "idempotencyDays", "capsuleDays"] as const),
  ...(["restoredAt", "acknowledgedAt", "witnessKey", "lostWitnessKeys"] as const),
] as const;

/** The instance, endpoints and deliveries: inserted, or updated. */
export function operationRows(tables: Tables) {
  const { instances } = directory;
  return {
    instance: () =>
      tables
        .insert(instances)
        .values(placeholdersOf(instances))
        .onConflictDoUpdate({ target: instances.id, set: excludedOf(instances, ...INSTANCE_CHANGES) }),
    webhook: () =>
      tables
        .insert(webhooks)
        .values(placeholdersOf(webhooks))
        .onConflictDoUpdate({ target: webhooks.id, set: excludedOf(webhooks, "disabled") }),
    delivery: () =>
      tables
        .insert(deliveries)
        .values(placeholdersOf(deliveries))
        .onConflictDoUpdate({
          target: deliveries.id,
          set: excludedOf(
            deliveries,
            "status",
            "attempts",
            "responseCode",
            "responseStart",
            "durationMs",
            "claimedUntil",
            "nextAttemptAt",
          ),
        }),
  };
}

/** Rows that are written once. */
export function finalRows(tables: Tables) {
  const { auditEntries, policies, schemas, verifiers } = directory;
  return {
    policy: () => tables.insert(policies).values(appendedOf(policies)),
    verifier: () => tables.insert(verifiers).values(appendedOf(verifiers)),
    schema: () => tables.insert(schemas).values(placeholdersOf(schemas)),
    auditEntry: () => tables.insert(auditEntries).values(placeholdersOf(auditEntries)),
  };
}

/** Rows that refer to others by position: money, warrants, and what a warrant's move writes. */
export function movesOf(tables: Tables) {
  const { accounts, checks, deposits, idempotencyKeys, postings, trace, warrantCounts, warrants } = ledger;
  const { scope, agent, state } = warrantCounts;
  return {
    ...payoutMovesOf(tables),
    insertWarrant: () => tables.insert(warrants).values(appendedOf(warrants)),
    moveWarrant: () =>
      tables
        .update(warrants)
        .set({
          ...given("state", "version", "releasedBps", "verifyingSince", "graceUntil", "settledAt"),
          traceHead: sql`${sql.param(placeholder("traceHead"), warrants.traceHead)}`,
          ...digestOf(warrants),
        })
        .where(eq(warrants.position, placeholder("position"))),
    countUp: () =>
      tables
        .insert(warrantCounts)
        .values(placeholdersOf(warrantCounts))
        .onConflictDoUpdate({
          target: [scope, agent, state],
          set: { count: sql`${warrantCounts.count} + excluded.count` },
        }),
    countDown: () =>
      tables
        .update(warrantCounts)
        .set({ count: sql`${warrantCounts.count} + ${placeholder("count")}` })
        .where(
          and(
            eq(scope, placeholder("scope")),
            eq(agent, placeholder("agent")),
            eq(state, placeholder("state")),
          ),
        ),
    insertAccount: () => tables.insert(accounts).values(appendedOf(accounts)),
    moveAccount: () =>
      tables
        .update(accounts)
        .set({
          available: sql`${accounts.available} + ${placeholder("available")}`,
          held: sql`${accounts.held} + ${placeholder("held")}`,
          paid: sql`${accounts.paid} + ${placeholder("paid")}`,
          funding: sql`${accounts.funding} + ${placeholder("funding")}`,
          payable: sql`${accounts.payable} + ${placeholder("payable")}`,
          submitted: sql`${accounts.submitted} + ${placeholder("submitted")}`,
          posted: sql`${placeholder("posted")}`,
        })
        .where(eq(accounts.position, placeholder("account"))),
    insertDeposit: () => tables.insert(deposits).values(appendedOf(deposits)),
    insertPosting: () => tables.insert(postings).values(appendedOf(postings)),
    insertTrace: () => tables.insert(trace).values(appendedOf(trace)),
    insertCheck: () => tables.insert(checks).values(appendedOf(checks)),
    insertIdempotencyKey: () => tables.insert(idempotencyKeys).values(appendedOf(idempotencyKeys)),
    finishIdempotencyKey: () =>
      tables
        .update(idempotencyKeys)
        .set({
          holder: sql`NULL`,
          ...given("status", "body", "warrant", "version", "encoding", "contentHash"),
          ...digestOf(idempotencyKeys),
        })
        .where(
          and(eq(idempotencyKeys.scope, placeholder("scope")), eq(idempotencyKeys.key, placeholder("key"))),
        ),
  };
}

/** The sums of stored content, and the running totals of sessions. */
export function sumsOf(tables: Tables) {
  const { scope, bought, bytes } = contentSums;
  const { sessionTotals } = directory;
  return {
    sessionTotal: () =>
      tables
        .insert(sessionTotals)
        .values(placeholdersOf(sessionTotals))
        .onConflictDoUpdate({
          target: [sessionTotals.session, sessionTotals.heldAt],
          set: excludedOf(sessionTotals, "total"),
        }),
    addContent: () =>
      tables
        .insert(contentSums)
        .values(placeholdersOf(contentSums))
        .onConflictDoUpdate({ target: [scope, bought], set: { bytes: sql`${bytes} + excluded.bytes` } }),
    subtractContent: () =>
      tables
        .update(contentSums)
        .set({ bytes: sql`${bytes} + ${placeholder("bytes")}` })
        .where(and(eq(scope, placeholder("scope")), eq(bought, sql.param(placeholder("bought"), bought)))),
  };
}

/** Deletions. */
export function deletionsOf(tables: Tables) {
  const { idempotencyKeys } = ledger;
  return {
    passkey: () => tables.delete(directory.passkeys).where(eq(directory.passkeys.id, placeholder("id"))),
    capsule: () => tables.delete(capsules).where(eq(capsules.id, placeholder("id"))),
    ...messagingDeletions(tables),
    plannedNotice: () => tables.delete(plannedNotices).where(eq(plannedNotices.id, placeholder("id"))),
    pushSubscription: () =>
      tables.delete(pushSubscriptions).where(eq(pushSubscriptions.id, placeholder("id"))),
    purchase: () => tables.delete(purchases).where(eq(purchases.id, placeholder("id"))),
    idempotencyKey: () =>
      tables
        .delete(idempotencyKeys)
        .where(
          and(eq(idempotencyKeys.scope, placeholder("scope")), eq(idempotencyKeys.key, placeholder("key"))),
        ),
  };
}
