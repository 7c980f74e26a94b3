import { and, eq, gt, inArray, isNull, ne, or, sql } from "drizzle-orm";
import type { State, Warrant } from "../../core/warrant.ts";
import type { Change, Row, Scope } from "../store.ts";
import type { Tables } from "./open.ts";
import { adminActRowOf, placeholdersOf, traceRowOf } from "./rows.ts";
import * as directory from "./tables/directory.ts";
import * as ledger from "./tables/ledger.ts";

/** Writes a Change, inside the transaction that decided it. */
export type Apply = (scope: Scope, change: Change) => void;

const { placeholder } = sql;

/** Writes one row. */
type Write = { run(values: Record<string, unknown>): unknown };

/** Rows of spending that change: inserted, or brought up to date. */
function prepareSpendingRows(tables: Tables) {
  const { agents, apiKeys, spendSessions } = directory;
  const { escalations } = ledger;
  return {
    agent: tables
      .insert(agents)
      .values(placeholdersOf(agents))
      .onConflictDoUpdate({
        target: agents.id,
        set: { status: sql`excluded.status`, failureCount: sql`excluded.failure_count` },
      })
      .prepare(),
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
      })
      .prepare(),
    spendSession: tables
      .insert(spendSessions)
      .values(placeholdersOf(spendSessions))
      .onConflictDoUpdate({
        target: spendSessions.id,
        set: {
          amountSpent: sql`excluded.amount_spent`,
          warrantCount: sql`excluded.warrant_count`,
          failureCount: sql`excluded.failure_count`,
          revokedAt: sql`excluded.revoked_at`,
        },
      })
      .prepare(),
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
      })
      .prepare(),
  };
}

/** Rows of an organisation and its people that change: inserted, or brought up to date. */
function preparePeopleRows(tables: Tables) {
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
      })
      .prepare(),
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
      })
      .prepare(),
    authSession: tables
      .insert(authSessions)
      .values(placeholdersOf(authSessions))
      .onConflictDoUpdate({ target: authSessions.tokenHash, set: { expiresAt: sql`excluded.expires_at` } })
      .prepare(),
    passwordReset: tables
      .insert(passwordResets)
      .values(placeholdersOf(passwordResets))
      .onConflictDoUpdate({
        target: passwordResets.tokenHash,
        set: { expiresAt: sql`excluded.expires_at`, usedAt: sql`excluded.used_at` },
      })
      .prepare(),
    passkey: tables
      .insert(passkeys)
      .values(placeholdersOf(passkeys))
      .onConflictDoUpdate({
        target: passkeys.id,
        set: { counter: sql`excluded.counter`, lastUsedAt: sql`excluded.last_used_at` },
      })
      .prepare(),
    passkeyApproval: tables
      .insert(passkeyApprovals)
      .values(placeholdersOf(passkeyApprovals))
      .onConflictDoUpdate({ target: passkeyApprovals.tokenHash, set: { usedAt: sql`excluded.used_at` } })
      .prepare(),
  };
}

/** Rows that are written once. */
function prepareFinalRows(tables: Tables) {
  const { adminActs, policies, schemas, verifiers } = directory;
  const { checks, deposits } = ledger;
  return {
    policy: tables.insert(policies).values(placeholdersOf(policies)).prepare(),
    verifier: tables.insert(verifiers).values(placeholdersOf(verifiers)).prepare(),
    schema: tables.insert(schemas).values(placeholdersOf(schemas)).prepare(),
    check: tables.insert(checks).values(placeholdersOf(checks)).prepare(),
    deposit: tables.insert(deposits).values(placeholdersOf(deposits)).prepare(),
    adminAct: tables.insert(adminActs).values(placeholdersOf(adminActs)).prepare(),
  };
}

function prepareMoves(tables: Tables) {
  const { idempotencyKeys, postings, trace, warrantCounts, warrants } = ledger;
  const counted = and(
    eq(warrantCounts.organisationId, placeholder("organisationId")),
    eq(warrantCounts.mode, placeholder("mode")),
    eq(warrantCounts.agentId, placeholder("agentId")),
    eq(warrantCounts.state, placeholder("state")),
  );
  return {
    insertWarrant: tables.insert(warrants).values(placeholdersOf(warrants)).prepare(),
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
      .where(eq(warrants.id, placeholder("id")))
      .prepare(),
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
      })
      .prepare(),
    countOut: tables
      .update(warrantCounts)
      .set({ count: sql`${warrantCounts.count} - 1` })
      .where(counted)
      .prepare(),
    insertPosting: tables.insert(postings).values(placeholdersOf(postings)).prepare(),
    insertTrace: tables.insert(trace).values(placeholdersOf(trace)).prepare(),
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
      })
      .prepare(),
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
      )
      .prepare(),
    freeKeys: tables
      .delete(idempotencyKeys)
      .where(and(eq(idempotencyKeys.warrantId, placeholder("warrantId")), isNull(idempotencyKeys.status)))
      .prepare(),
  };
}

export function createApply(tables: Tables): Apply {
  const moves = prepareMoves(tables);
  const rows: Readonly<Record<Row["kind"], Write>> = {
    ...prepareSpendingRows(tables),
    ...preparePeopleRows(tables),
    ...prepareFinalRows(tables),
  };

  const countKeys = ({ organisationId, mode, agentId }: Warrant, state: State) => ({
    organisationId,
    mode,
    agentId: agentId ?? "",
    state,
  });

  function writeWarrant({ before, after }: NonNullable<Change["warrant"]>, traceHead: string): void {
    const row = { ...after, traceHead };
    if (before === null) {
      moves.insertWarrant.run(row);
    } else {
      moves.moveWarrant.run(row);
      moves.countOut.run(countKeys(before, before.state));
    }
    moves.countIn.run(countKeys(after, after.state));
  }

  return ({ organisationId, mode }, change) => {
    if (change.warrant) {
      if (!change.trace) throw new Error("a warrant moves with a trace entry");
      writeWarrant(change.warrant, change.trace.entryHash);
      moves.insertTrace.run({ ...traceRowOf(change.trace), position: null });
    }
    // Checks and escalations refer to the warrant, and a posting to its deposit: the order is theirs.
    for (const { kind, row } of change.rows ?? [])
      rows[kind].run(kind === "adminAct" ? adminActRowOf(row) : row);
    if (change.endsSignInsOf) moves.endSignIns.run(change.endsSignInsOf);
    if (change.removesPasskeys && change.removesPasskeys.length > 0) {
      tables
        .delete(directory.passkeys)
        .where(inArray(directory.passkeys.id, [...change.removesPasskeys]))
        .run();
    }
    if (change.posting) {
      const { legs, ...posting } = change.posting;
      const rail = ledger.RAIL_OF_MODE[mode];
      moves.insertPosting.run({ ...posting, ...legs, organisationId, mode, rail, id: null });
    }
    if (change.freesKeysOf !== undefined) moves.freeKeys.run({ warrantId: change.freesKeysOf });
    if (change.idempotency) {
      const { outcome, ...record } = change.idempotency;
      moves.putIdempotencyKey.run({
        ...record,
        organisationId,
        mode,
        status: outcome?.status ?? null,
        body: outcome?.body ?? null,
      });
    }
  };
}
