import { and, eq, gt, inArray, isNull, ne, or, sql } from "drizzle-orm";
import type { State, Warrant } from "../../core/warrant.ts";
import type { Change, Row, Scope } from "../store.ts";
import type { KnownRows } from "./known-rows.ts";
import type { Connection, Tables } from "./open.ts";
import { type PreparedWrite, prepareWrites } from "./prepared-write.ts";
import { adminActRowOf, appendedOf, placeholdersOf, traceRowOf } from "./rows.ts";
import * as directory from "./tables/directory.ts";
import * as ledger from "./tables/ledger.ts";
import { deliveries, webhooks } from "./tables/webhooks.ts";

/** Writes a Change, inside the transaction that decided it. */
export type Apply = (scope: Scope, change: Change) => void;

const { placeholder } = sql;

/** Rows of spending that change: inserted, or brought up to date. */
function spendingRows(tables: Tables) {
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
function peopleRows(tables: Tables) {
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

/** The instance, endpoints and deliveries: inserted, or brought up to date. */
function operationRows(tables: Tables) {
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
function finalRows(tables: Tables) {
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

function movesOf(tables: Tables) {
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
        },
      }),
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

export function createApply({ tables, raw }: Connection, known: KnownRows): Apply {
  const moves = prepareWrites(raw, movesOf(tables));
  const rows: Readonly<Record<Row["kind"], PreparedWrite>> = prepareWrites(raw, {
    ...spendingRows(tables),
    ...peopleRows(tables),
    ...operationRows(tables),
    ...finalRows(tables),
  });

  const countKeys = ({ organisationId, mode, agentId }: Warrant, state: State) => ({
    organisationId,
    mode,
    agentId: agentId ?? "",
    state,
  });

  function writeWarrant({ before, after }: NonNullable<Change["warrant"]>, traceHead: string): void {
    const row = { ...after, traceHead };
    if (before === null) {
      moves.insertWarrant(row);
    } else {
      moves.moveWarrant(row);
      moves.countOut(countKeys(before, before.state));
    }
    moves.countIn(countKeys(after, after.state));
  }

  return ({ organisationId, mode }, change) => {
    if (change.warrant) {
      if (!change.trace) throw new Error("a warrant moves with a trace entry");
      writeWarrant(change.warrant, change.trace.entryHash);
      moves.insertTrace({ ...traceRowOf(change.trace), position: null });
    }
    if (change.voidsPasswordResetsOf) moves.voidPasswordResets(change.voidsPasswordResetsOf);
    // Checks and escalations refer to the warrant, and a posting to its deposit: the order is theirs.
    for (const { kind, row } of change.rows ?? []) {
      rows[kind](kind === "adminAct" ? adminActRowOf(row) : row);
      known.forget(kind);
      // Whose passkeys count is known with them.
      if (kind === "user") known.forget("passkey");
    }
    if (change.endsSignInsOf) moves.endSignIns(change.endsSignInsOf);
    if (change.removesPasskeys && change.removesPasskeys.length > 0) {
      tables
        .delete(directory.passkeys)
        .where(inArray(directory.passkeys.id, [...change.removesPasskeys]))
        .run();
      known.forget("passkey");
    }
    if (change.posting) {
      const { legs, ...posting } = change.posting;
      const rail = ledger.RAIL_OF_MODE[mode];
      moves.insertPosting({ ...posting, ...legs, organisationId, mode, rail, id: null });
    }
    if (change.freesKeysOf !== undefined) moves.freeKeys({ warrantId: change.freesKeysOf });
    if (change.idempotency) {
      const { outcome, ...record } = change.idempotency;
      moves.putIdempotencyKey({
        ...record,
        organisationId,
        mode,
        status: outcome?.status ?? null,
        body: outcome?.body ?? null,
      });
    }
  };
}
