import { and, eq, gt, isNull, ne, or, sql } from "drizzle-orm";
import type { Tables } from "./open.ts";
import { appendedOf, placeholdersOf } from "./rows.ts";
import * as directory from "./tables/directory.ts";
import * as ledger from "./tables/ledger.ts";
import { contents, purchases } from "./tables/purchases.ts";
import { deliveries, webhooks } from "./tables/webhooks.ts";

/** The statements that write, by name; `apply.ts` fills them. */

const { placeholder } = sql;

/** Rows of spending that change: inserted, or brought up to date. */
export function spendingRows(tables: Tables) {
  const { agents, apiKeys, spendSessions } = directory;
  const { escalations } = ledger;
  return {
    agent: tables
      .insert(agents)
      .values(placeholdersOf(agents))
      .onConflictDoUpdate({
        target: agents.id,
        set: { status: sql`excluded.status`, failureCount: sql`excluded.failure_count` },
      }),
    apiKey: tables
      .insert(apiKeys)
      .values(placeholdersOf(apiKeys))
      .onConflictDoUpdate({
        target: apiKeys.id,
        set: {
          expiresAt: sql`excluded.expires_at`,
          lastUsedAt: sql`excluded.last_used_at`,
          revokedAt: sql`excluded.revoked_at`,
        },
      }),
    spendSession: tables
      .insert(spendSessions)
      .values(appendedOf(spendSessions))
      .onConflictDoUpdate({
        target: spendSessions.id,
        set: {
          amountSpent: sql`excluded.amount_spent`,
          warrantCount: sql`excluded.warrant_count`,
          failureCount: sql`excluded.failure_count`,
          revokedAt: sql`excluded.revoked_at`,
        },
      }),
    escalation: tables
      .insert(escalations)
      .values(placeholdersOf(escalations))
      .onConflictDoUpdate({
        target: escalations.id,
        set: {
          status: sql`excluded.status`,
          decision: sql`excluded.decision`,
          releasedBps: sql`excluded.released_bps`,
          note: sql`excluded.note`,
          raisedBy: sql`excluded.raised_by`,
          resolvedBy: sql`excluded.resolved_by`,
          resolvedAt: sql`excluded.resolved_at`,
        },
      }),
  };
}

/** Rows of an organisation and its people that change: inserted, or brought up to date. */
export function peopleRows(tables: Tables) {
  const { authSessions, organisations, passkeyApprovals, passkeys, passwordResets, users } = directory;
  return {
    organisation: tables
      .insert(organisations)
      .values(placeholdersOf(organisations))
      .onConflictDoUpdate({
        target: organisations.id,
        set: {
          name: sql`excluded.name`,
          killSwitch: sql`excluded.kill_switch`,
          passkeyThreshold: sql`excluded.passkey_threshold`,
        },
      }),
    user: tables
      .insert(users)
      .values(placeholdersOf(users))
      .onConflictDoUpdate({
        target: users.id,
        set: {
          name: sql`excluded.name`,
          role: sql`excluded.role`,
          passwordHash: sql`excluded.password_hash`,
          passwordResetAt: sql`excluded.password_reset_at`,
          removedAt: sql`excluded.removed_at`,
        },
      }),
    authSession: tables
      .insert(authSessions)
      .values(placeholdersOf(authSessions))
      .onConflictDoUpdate({ target: authSessions.tokenHash, set: { expiresAt: sql`excluded.expires_at` } }),
    passwordReset: tables
      .insert(passwordResets)
      .values(placeholdersOf(passwordResets))
      .onConflictDoUpdate({
        target: passwordResets.tokenHash,
        set: { expiresAt: sql`excluded.expires_at`, usedAt: sql`excluded.used_at` },
      }),
    passkey: tables
      .insert(passkeys)
      .values(placeholdersOf(passkeys))
      .onConflictDoUpdate({
        target: passkeys.id,
        set: { counter: sql`excluded.counter`, lastUsedAt: sql`excluded.last_used_at` },
      }),
    passkeyApproval: tables
      .insert(passkeyApprovals)
      .values(placeholdersOf(passkeyApprovals))
      .onConflictDoUpdate({ target: passkeyApprovals.tokenHash, set: { usedAt: sql`excluded.used_at` } }),
  };
}

/** Purchases, and the answers that were paid for. */
export function purchaseRows(tables: Tables) {
  return {
    purchase: tables
      .insert(purchases)
      .values(placeholdersOf(purchases))
      .onConflictDoUpdate({
        target: purchases.id,
        set: {
          phase: sql`excluded.phase`,
          quotedAmount: sql`excluded.quoted_amount`,
          quotedAsset: sql`excluded.quoted_asset`,
          quotedPayee: sql`excluded.quoted_payee`,
          timeoutSeconds: sql`excluded.timeout_seconds`,
          pays: sql`excluded.pays`,
          warrantId: sql`excluded.warrant_id`,
          payer: sql`excluded.payer`,
          chainId: sql`excluded.chain_id`,
          contract: sql`excluded.contract`,
          nonce: sql`excluded.nonce`,
          validBefore: sql`excluded.valid_before`,
          header: sql`excluded.header`,
          attempt: sql`excluded.attempt`,
          known: sql`excluded.known`,
          knownBy: sql`excluded.known_by`,
          transaction: sql`excluded.transaction_id`,
          responseStatus: sql`excluded.response_status`,
          responseHash: sql`excluded.response_hash`,
          answeredAt: sql`excluded.answered_at`,
          endedAt: sql`excluded.ended_at`,
          nextCheckAt: sql`excluded.next_check_at`,
        },
      }),
    content: tables.insert(contents).values(placeholdersOf(contents)).onConflictDoNothing(),
  };
}

/** The instance, endpoints and deliveries: inserted, or brought up to date. */
export function operationRows(tables: Tables) {
  const { instances } = directory;
  return {
    instance: tables
      .insert(instances)
      .values(placeholdersOf(instances))
      .onConflictDoUpdate({
        target: instances.id,
        set: {
          baseUrl: sql`excluded.base_url`,
          restoredAt: sql`excluded.restored_at`,
          acknowledgedAt: sql`excluded.acknowledged_at`,
        },
      }),
    webhook: tables
      .insert(webhooks)
      .values(placeholdersOf(webhooks))
      .onConflictDoUpdate({ target: webhooks.id, set: { disabled: sql`excluded.disabled` } }),
    delivery: tables
      .insert(deliveries)
      .values(placeholdersOf(deliveries))
      .onConflictDoUpdate({
        target: deliveries.id,
        set: {
          status: sql`excluded.status`,
          attempts: sql`excluded.attempts`,
          responseCode: sql`excluded.response_code`,
          responseStart: sql`excluded.response_start`,
          durationMs: sql`excluded.duration_ms`,
          claimedUntil: sql`excluded.claimed_until`,
          nextAttemptAt: sql`excluded.next_attempt_at`,
        },
      }),
  };
}

/** Rows that are written once. */
export function finalRows(tables: Tables) {
  const { adminActs, policies, schemas, verifiers } = directory;
  const { checks, deposits } = ledger;
  return {
    policy: tables.insert(policies).values(appendedOf(policies)),
    verifier: tables.insert(verifiers).values(placeholdersOf(verifiers)),
    schema: tables.insert(schemas).values(placeholdersOf(schemas)),
    check: tables.insert(checks).values(placeholdersOf(checks)),
    deposit: tables.insert(deposits).values(placeholdersOf(deposits)),
    adminAct: tables.insert(adminActs).values(placeholdersOf(adminActs)),
  };
}

/** What a move of a warrant writes besides rows. */
export function movesOf(tables: Tables) {
  const { idempotencyKeys, postings, trace, warrantCounts, warrants } = ledger;
  const counted = and(
    eq(warrantCounts.organisationId, placeholder("organisationId")),
    eq(warrantCounts.mode, placeholder("mode")),
    eq(warrantCounts.agentId, placeholder("agentId")),
    eq(warrantCounts.state, placeholder("state")),
  );
  return {
    insertWarrant: tables.insert(warrants).values(placeholdersOf(warrants)),
    moveWarrant: tables
      .update(warrants)
      .set({
        state: sql`${placeholder("state")}`,
        version: sql`${placeholder("version")}`,
        releasedBps: sql`${placeholder("releasedBps")}`,
        traceHead: sql`${placeholder("traceHead")}`,
        movedAt: sql`${placeholder("movedAt")}`,
        settledAt: sql`${placeholder("settledAt")}`,
      })
      .where(eq(warrants.id, placeholder("id"))),
    countIn: tables
      .insert(warrantCounts)
      .values({ ...placeholdersOf(warrantCounts), count: 1 })
      .onConflictDoUpdate({
        target: [
          warrantCounts.organisationId,
          warrantCounts.mode,
          warrantCounts.agentId,
          warrantCounts.state,
        ],
        set: { count: sql`${warrantCounts.count} + 1` },
      }),
    countOut: tables
      .update(warrantCounts)
      .set({ count: sql`${warrantCounts.count} - 1` })
      .where(counted),
    insertPosting: tables.insert(postings).values(placeholdersOf(postings)),
    insertTrace: tables.insert(trace).values(placeholdersOf(trace)),
    putIdempotencyKey: tables
      .insert(idempotencyKeys)
      .values(placeholdersOf(idempotencyKeys))
      .onConflictDoUpdate({
        target: [idempotencyKeys.organisationId, idempotencyKeys.mode, idempotencyKeys.key],
        set: {
          fingerprint: sql`excluded.fingerprint`,
          status: sql`excluded.status`,
          body: sql`excluded.body`,
          contentHash: sql`excluded.content_hash`,
        },
      }),
  };
}

/** What ends or is forgotten: sign-ins, links, keys, and purchases of which nothing was held. */
export function endsOf(tables: Tables) {
  const { idempotencyKeys } = ledger;
  return {
    endSignIns: tables
      .update(directory.authSessions)
      .set({ expiresAt: sql`${placeholder("at")}` })
      .where(
        and(
          eq(directory.authSessions.userId, placeholder("userId")),
          gt(directory.authSessions.expiresAt, placeholder("at")),
          or(
            sql`${placeholder("exceptTokenHash")} IS NULL`,
            ne(directory.authSessions.tokenHash, placeholder("exceptTokenHash")),
          ),
        ),
      ),
    forgetPurchase: tables
      .delete(purchases)
      .where(and(eq(purchases.id, placeholder("id")), eq(purchases.phase, sql`'quoting'`))),
    forgetKey: tables
      .delete(idempotencyKeys)
      .where(
        and(
          eq(idempotencyKeys.organisationId, placeholder("organisationId")),
          eq(idempotencyKeys.mode, placeholder("mode")),
          eq(idempotencyKeys.key, placeholder("idempotencyKey")),
          isNull(idempotencyKeys.status),
        ),
      ),
    voidPasswordResets: tables
      .update(directory.passwordResets)
      .set({ expiresAt: sql`${placeholder("at")}` })
      .where(
        and(
          eq(directory.passwordResets.userId, placeholder("userId")),
          gt(directory.passwordResets.expiresAt, placeholder("at")),
          isNull(directory.passwordResets.usedAt),
        ),
      ),
    freeKeys: tables
      .delete(idempotencyKeys)
      .where(and(eq(idempotencyKeys.warrantId, placeholder("warrantId")), isNull(idempotencyKeys.status))),
  };
}
