import type { Database } from "bun:sqlite";
import type { AuditAction } from "../../../core/audit-entry.ts";
import { CAUSE_OF, type PostingKind } from "../../../core/postings.ts";
import { nameOf, type Row } from "./digests.ts";
import { expectSame } from "./rows.ts";

/** Checks that no row is gone that is kept for good: by its place, or by what was recorded when it was made. */
export function* auditKept(database: Database): Generator<string> {
  for (const table of NUMBERED) yield* auditPlaces(database, table);
  for (const [action, table] of MADE) yield* auditMade(database, action, table);
  for (const [action, table, kind] of POSTED) yield* auditPosted(database, action, table, kind);
}

/** Tables of which no row is ever deleted. SQLite gives each new one the next position. */
export const NUMBERED = [
  "accounts",
  "agents",
  "checks",
  "corrections",
  "deposits",
  "payees",
  "payouts",
  "policies",
  "postings",
  "scopes",
  "spend_sessions",
  "trace",
  "verifiers",
  "warrants",
] as const;

const GAPS_MAX = 10;

/** Checks that the positions of a table are 1, 2, 3 and so on; where it came from PostgreSQL, from the last one that came on. */
function* auditPlaces(database: Database, table: string): Generator<string> {
  const ends = database
    .query<{ count: bigint; first: bigint | null; last: bigint | null }, []>(
      `SELECT count(*) AS count, min(position) AS first, max(position) AS last FROM ${table}`,
    )
    .get();
  if (!ends || ends.count === 0n || (ends.first === 1n && ends.last === ends.count)) return;
  // The whole table is read only where something is wrong with it.
  const gaps = database.query<Row & { readonly position: bigint }, [bigint, number]>(
    `SELECT * FROM (SELECT *, lag(position, 1, 0) OVER (ORDER BY position) AS before FROM ${table})
     WHERE position <> before + 1 AND before >= ? LIMIT ?`,
  );
  for (const row of gaps.all(lastImported(database, table), GAPS_MAX))
    yield `${nameOf(database, table, row)}: is at position ${row.position}, and the one before it at ${row.before}; none is ever deleted`;
}

const lastImported = (database: Database, table: string): bigint =>
  database.query<{ last: bigint }, [string]>("SELECT last FROM imported_tables WHERE name = ?").get(table)
    ?.last ?? 0n;

/** What the audit log records of things that are never deleted, and where they are. */
const MADE: readonly (readonly [AuditAction, table: string])[] = [
  ["agent.created", "agents"],
  ["balance.funded", "deposits"],
  ["correction.proposed", "corrections"],
  ["correction.recorded", "corrections"],
  ["payout.submitted", "payouts"],
  ["policy.created", "policies"],
  ["schema.created", "schemas"],
  ["source_key.added", "source_keys"],
  ["spend_session.created", "spend_sessions"],
  ["verifier.created", "verifiers"],
];

function* auditMade(database: Database, action: AuditAction, table: string): Generator<string> {
  const gone = database.query<{ id: string; subject: string }, [AuditAction]>(
    `SELECT id, subject FROM audit_entries WHERE action = ? AND NOT EXISTS (SELECT 1 FROM ${table} WHERE id = subject)`,
  );
  for (const { id, subject } of gone.iterate(action))
    yield `audit entry ${id}: says ${action} of ${subject}, which is not there`;
}

/** What administrators post: the action that the audit log has of it, where the row is, and the kind of its posting. */
const POSTED: readonly (readonly [AuditAction, table: string, PostingKind])[] = [
  ["balance.funded", "deposits", "deposit"],
  ["correction.recorded", "corrections", "correction"],
  ["payout.submitted", "payouts", "payout_submitted"],
  ["payout.paid", "payouts", "payout_paid"],
  ["payout.failed", "payouts", "payout_failed"],
];

/** Checks that each of these was posted at the time that the audit log has of it. */
function* auditPosted(
  database: Database,
  action: AuditAction,
  table: string,
  kind: PostingKind,
): Generator<string> {
  const others = database.query<{ id: string; posted: bigint; recorded: bigint }, [PostingKind, AuditAction]>(
    `SELECT ${table}.id, postings.recorded_at AS posted, audit_entries.recorded_at AS recorded
     FROM audit_entries JOIN ${table} ON ${table}.id = subject
       JOIN postings ON cause = ${table}.position AND kind = ?
     WHERE action = ? AND postings.recorded_at <> audit_entries.recorded_at`,
  );
  for (const { id, posted, recorded } of others.iterate(kind, action))
    yield* expectSame(`${CAUSE_OF[kind]} ${id}: its posting's recorded_at`, posted, recorded);
}
