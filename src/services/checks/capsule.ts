import { sha256 } from "../../core/canonical.ts";
import {
  type Capsule,
  type CapsuleOf,
  type CapsulePart,
  capsuleBytes,
  capsuleFacts,
  capsuleHashOf,
  keptBytes,
  PART_BYTES,
} from "../../core/capsule.ts";
import { type Evidence, evidenceHashOf } from "../../core/clauses/evidence.ts";
import { isRefusal } from "../../core/errors.ts";
import type { Warrant } from "../../core/warrant.ts";
import type { Change } from "../../store/change.ts";
import { OLDEST_CAPSULES_MAX } from "../../store/needs.ts";
import type { Scope } from "../../store/scope.ts";
import type { Decision } from "../../store/store.ts";
import type { Context } from "../context.ts";

/**
 * Keeps what a check was made from, so that it can be made again (docs/security, "Capsules").
 *
 * It is written before the outcome of the check, by commits of its own, since a body of 10 MiB in one commit would hold
 * up every other request. The body is compressed on another thread while the clauses are evaluated, and comes in parts, a
 * commit each, so that others get their turn in between.
 *
 * A crash leaves a capsule without a check, or a body without its last parts: the check then was interrupted and is made
 * anew, and that capsule is deleted in its turn. Nothing here ever refuses a check or fails it: without a capsule it has
 * the hash of one all the same.
 */

/** A body that is ready to be stored. */
export type PackedBody = {
  /** Of the bytes that are stored. */
  readonly hash: string | null;
  readonly parts: readonly CapsulePart[];
  readonly storedBytes: number;
};

const NO_BODY: PackedBody = { hash: null, parts: [], storedBytes: 0 };

/** Compresses the body of evidence; null where that failed. */
export async function packBody(ctx: Context, evidence: Evidence): Promise<PackedBody | null> {
  if (!evidence.reached || evidence.body.length === 0) return NO_BODY;
  try {
    const packed = await ctx.capsules.compress(evidence.body);
    const hash = sha256(packed);
    const parts: CapsulePart[] = [];
    for (let at = 0; at < packed.length; at += PART_BYTES)
      parts.push({ hash, part: parts.length, bytes: packed.subarray(at, at + PART_BYTES) });
    return { hash, parts, storedBytes: packed.length };
  } catch {
    return null;
  }
}

/** The body of a seller's answer, which its purchase has stored. */
export const boughtBody = (evidence: Evidence): PackedBody =>
  evidence.reached && evidence.body.length > 0
    ? { hash: evidenceHashOf(evidence), parts: [], storedBytes: evidence.body.length }
    : NO_BODY;

/**
 * Keeps the capsule of a check that is about to be recorded.
 *
 * @returns the hash of its facts, also where it could not be kept
 */
export async function keepCapsule(
  ctx: Context,
  { organisationId, mode }: Warrant,
  of: CapsuleOf,
  body: PackedBody | null,
): Promise<string> {
  const facts = capsuleFacts(of);
  const scope = { organisationId, mode };
  try {
    // Where the disk gets full, the space that is left is for money.
    const isKept =
      body !== null &&
      ctx.store.hasSpaceForCapsule(mode) &&
      (await insertCapsule(ctx, scope, { id: of.id, facts }, body)) &&
      (await insertParts(ctx, scope, of.id, body.parts.slice(1)));
    if (!isKept) ctx.capsules.notKept.count += 1;
  } catch {
    // The outcome's own commit says it where the ledger cannot be written.
    ctx.capsules.notKept.count += 1;
  }
  return capsuleHashOf({ facts });
}

/**
 * Each commit but the first deletes OLDEST_CAPSULES_MAX at most, and the smallest capsule counts 4 kB: enough for the
 * largest to come in.
 */
const ROUNDS_MAX = 64;

async function insertCapsule(
  ctx: Context,
  scope: Scope,
  { id, facts }: Pick<Capsule, "id" | "facts">,
  { hash, parts, storedBytes }: PackedBody,
): Promise<boolean> {
  const bytes = capsuleBytes(facts, storedBytes);
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const inserted = await ctx.store.execute({
      scope,
      // Mostly there is room, or one must go. Its facts are read with it, so no more are asked for at first.
      needs: { oldestCapsules: round === 0 ? 1 : OLDEST_CAPSULES_MAX, newestCapsule: true },
      decide({ oldestCapsules, newestCapsule, recordedAt }): Decision<boolean> {
        const kept = keptBytes(oldestCapsules[0] ?? null, newestCapsule);
        const deleted = oldestOf(oldestCapsules, kept + bytes - ctx.capsules.bytesMax);
        const fits = kept + bytes - sumOf(deleted) <= ctx.capsules.bytesMax;
        const deletions = deleted.map((row) => ({ kind: "capsule" as const, row }));
        if (!fits) return { answer: false, change: { put: [], deleted: deletions } };
        const row: Capsule = {
          ...{ id, ...scope, facts, bytes, storedHash: hash, parts: parts.length, createdAt: recordedAt },
          bytesUntil: (newestCapsule?.bytesUntil ?? 0) + bytes,
        };
        const first = parts.slice(0, 1).map((part) => ({ kind: "capsulePart" as const, row: part }));
        const put = [{ kind: "capsule" as const, before: null, row }, ...first];
        return { answer: true, change: { put, deleted: deletions } };
      },
    });
    if (inserted === true) return true;
    if (isRefusal(inserted)) return false;
  }
  return false;
}

/** The other parts, unless the capsule was deleted meanwhile to make room. Where one cannot be written, the capsule goes too. */
async function insertParts(
  ctx: Context,
  scope: Scope,
  id: string,
  parts: readonly CapsulePart[],
): Promise<boolean> {
  const changing = (change: (capsule: Capsule) => Change) =>
    ctx.store.execute({
      scope,
      needs: { capsule: id },
      decide: ({ capsule }): Decision<boolean> =>
        capsule ? { answer: true, change: change(capsule) } : { answer: false },
    });
  try {
    for (const row of parts) {
      const isThere = await changing(() => ({ put: [{ kind: "capsulePart", row }] }));
      if (isThere !== true) return false;
    }
    return true;
  } catch (error) {
    await changing((row) => ({ put: [], deleted: [{ kind: "capsule", row }] }));
    throw error;
  }
}

/** What one commit deletes at most, so that it does not hold up the others much longer than that of a part. */
const DELETED_BYTES_MAX = 4 * PART_BYTES;

/** The oldest capsules that count as much as must go, as many as one commit may delete: one at least. */
function oldestOf(oldest: readonly Capsule[], excessBytes: number): readonly Capsule[] {
  const deleted: Capsule[] = [];
  let bytes = 0;
  for (const capsule of oldest) {
    if (bytes >= excessBytes || bytes >= DELETED_BYTES_MAX) break;
    deleted.push(capsule);
    bytes += capsule.bytes;
  }
  return deleted;
}

const sumOf = (capsules: readonly Capsule[]): number => capsules.reduce((sum, { bytes }) => sum + bytes, 0);

/** How many organisations and modes one step of the retention looks at. */
const SCOPES_MAX = 4;

/**
 * Deletes a few capsules of before a time, the oldest first.
 *
 * @returns how many
 */
export async function forgetCapsules(ctx: Context, createdBefore: number): Promise<number> {
  const scopes = await ctx.store.read((reader) => reader.capsules.scopesWithOld(createdBefore, SCOPES_MAX));
  const forgotten = await Promise.all(
    scopes.map((scope) =>
      ctx.store.execute({
        scope,
        needs: { oldestCapsules: OLDEST_CAPSULES_MAX },
        decide({ oldestCapsules }): Decision<number> {
          const until = oldestCapsules.findIndex(({ createdAt }) => createdAt >= createdBefore);
          const old = oldestCapsules.slice(0, until === -1 ? OLDEST_CAPSULES_MAX : until);
          const deleted = oldestOf(old, Number.POSITIVE_INFINITY);
          const deletions = deleted.map((row) => ({ kind: "capsule" as const, row }));
          return { answer: deleted.length, change: { put: [], deleted: deletions } };
        },
      }),
    ),
  );
  return forgotten.reduce((sum: number, one) => (isRefusal(one) ? sum : sum + one), 0);
}
