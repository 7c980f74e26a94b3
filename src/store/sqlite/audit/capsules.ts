import type { Database } from "bun:sqlite";
import { zstdDecompressSync } from "node:zlib";
import { canonicalJson, sha256 } from "../../../core/canonical.ts";
import { type CapsuleFacts, capsuleBytes, capsuleHashOf } from "../../../core/capsule.ts";
import { EVIDENCE_BYTES_MAX } from "../../../core/clauses/limits.ts";
import { thumbprintOf } from "../../../core/source-key.ts";
import { isoTime } from "../../../core/time.ts";
import { storedBody } from "../../sql/readers/capsules.ts";
import { capsules } from "../../sql/tables/capsules.ts";
import { checks } from "../../sql/tables/ledger.ts";
import { expectSame, guarded, inSnapshot, readRow, rowsOf } from "./rows.ts";
import { BY_POSITION, BY_ROW, type Did, inSlice, type Slice, slicesOf } from "./slices.ts";

type Row = typeof capsules.$inferSelect;

/** How many capsules are read at once. Each has up to 10 MiB. */
const CAPSULES_AT_ONCE = 8;
const PARTS_AT_ONCE = 1_000;

/**
 * Checks each capsule against its check, its facts and its stored bytes against their hashes, and what it counts. A check may lack
 * its capsule, since capsules are deleted; a capsule may lack its check, where a check was interrupted.
 */
export function* auditCapsules(database: Database, did: Did): Generator<string> {
  for (const slice of slicesOf(database, "capsules", BY_POSITION, CAPSULES_AT_ONCE, did))
    yield* inSnapshot(database, () => [...auditSlice(database, slice)]);
  for (const slice of slicesOf(database, "capsule_parts", BY_ROW, PARTS_AT_ONCE, did))
    yield* inSnapshot(database, () => [...auditParts(database, slice)]);
}

function* auditSlice(database: Database, { after, last }: Slice<bigint>): Generator<string> {
  for (const { raw, read } of rowsOf(database, capsules, `WHERE ${inSlice("position")}`, after, last)) {
    const what = `capsule ${raw.id}`;
    yield* guarded(what, () => auditCapsule(database, what, read()));
  }
}

function* auditCapsule(database: Database, what: string, row: Row): Generator<string> {
  const facts = JSON.parse(row.facts) as CapsuleFacts;
  if (canonicalJson(facts) !== row.facts) yield `${what}: its facts are not canonical JSON`;
  yield* expectSame(`${what}: its facts' check_id`, facts.check_id, row.id);
  const check = readRow(database, checks, row.id);
  if (check !== null) {
    yield* expectSame(`${what}: the SHA-256 of its facts`, capsuleHashOf(row), check.capsuleHash);
    yield* auditScope(database, what, row, check.warrant);
    const signer = facts.signed_with && thumbprintOf(facts.signed_with);
    yield* expectSame(`${what}: the thumbprint of signed_with`, signer, check.signedBy);
    yield* auditBody(database, what, row, facts);
    yield* expectSame(`${what}: its facts' evaluated_at`, facts.evaluated_at, isoTime(check.evaluatedAt));
  }
  const before = database
    .query<{ bytes_until: bigint; created_at: bigint }, [string, string, number]>(
      `SELECT bytes_until, created_at FROM capsules
       WHERE organisation_id = ? AND mode = ? AND position < ? ORDER BY position DESC LIMIT 1`,
    )
    .get(row.organisationId, row.mode, row.position);
  if (before === null) return;
  yield* expectSame(`${what}: bytes_until`, row.bytesUntil, Number(before.bytes_until) + row.bytes);
  if (row.createdAt < before.created_at) yield `${what}: created_at is before that of the capsule before it`;
}

/** Checks that it belongs to whom its check belongs to. */
function* auditScope(database: Database, what: string, row: Row, warrant: number): Generator<string> {
  const scope = database
    .query<{ organisation_id: string; mode: string }, [number]>(
      `SELECT organisation_id, mode FROM warrants JOIN scopes ON scopes.position = scope
       WHERE warrants.position = ?`,
    )
    .get(warrant);
  yield* expectSame(`${what}: organisation_id`, row.organisationId, scope?.organisation_id);
  yield* expectSame(`${what}: mode`, row.mode, scope?.mode);
}

function* auditBody(
  database: Database,
  what: string,
  row: Row,
  { evidence_hash }: CapsuleFacts,
): Generator<string> {
  const its = `${what}: its facts' evidence_hash`;
  if (row.storedHash === null) {
    yield* expectSame(its, evidence_hash, sha256(""));
    yield* expectSame(`${what}: has no body: parts`, row.parts, 0);
    yield* expectSame(`${what}: bytes`, row.bytes, capsuleBytes(row.facts, 0));
    return;
  }
  const stored = storedBody(database, row);
  if (stored === null) {
    yield `${what}: its body ${row.storedHash} is missing`;
    return;
  }
  const { bytes, isCompressed } = stored;
  yield* expectSame(`${what}: the SHA-256 of its stored body`, sha256(bytes), row.storedHash);
  yield* expectSame(`${what}: bytes`, row.bytes, capsuleBytes(row.facts, bytes.length));
  const body = isCompressed ? zstdDecompressSync(bytes, { maxOutputLength: EVIDENCE_BYTES_MAX }) : bytes;
  yield* expectSame(its, evidence_hash, sha256(body));
}

/** Checks that each part has a capsule that keeps it. */
function* auditParts(database: Database, { after, last }: Slice<bigint>): Generator<string> {
  const strays = database.query<{ hash: string; part: bigint }, [bigint, bigint]>(
    `SELECT hash, part FROM capsule_parts WHERE ${inSlice("rowid")}
       AND NOT EXISTS (SELECT 1 FROM capsules WHERE stored_hash = hash)`,
  );
  for (const { hash, part } of strays.iterate(after, last))
    yield `part ${part} of the body ${hash}: no capsule keeps it`;
}
