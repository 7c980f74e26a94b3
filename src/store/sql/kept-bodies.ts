import type { Connection, Tables } from "./database.ts";
import { lazily } from "./lazily.ts";
import { appendedOf, excludedOf, placeholdersOf } from "./rows.ts";
import { capsuleParts, capsules } from "./tables/capsules.ts";
import { sourceKeys } from "./tables/directory.ts";

/** How the bodies of answers are written and deleted: those in capsules in parts, those of purchases whole. */

/** Capsules of checks, their bodies, and the keys that may have signed them. */
export const capsuleRows = (tables: Tables) => ({
  sourceKey: () =>
    tables
      .insert(sourceKeys)
      .values(placeholdersOf(sourceKeys))
      .onConflictDoUpdate({ target: sourceKeys.id, set: excludedOf(sourceKeys, "removedAt") }),
  capsule: () => tables.insert(capsules).values(appendedOf(capsules)),
  // What is there already has the same bytes, since its hash is theirs.
  capsulePart: () => tables.insert(capsuleParts).values(placeholdersOf(capsuleParts)).onConflictDoNothing(),
});

/** Deletes a body that no purchase and no capsule keeps. */
export const deletionOfUnkept = (raw: Connection["raw"]) =>
  lazily(() => {
    const whole = raw.prepare<unknown, [string]>(
      `DELETE FROM contents WHERE hash = ?1
         AND NOT EXISTS (SELECT 1 FROM purchases WHERE response_hash = ?1 AND content_bytes > 0)
         AND NOT EXISTS (SELECT 1 FROM capsules WHERE stored_hash = ?1)`,
    );
    const parts = raw.prepare<unknown, [string]>(
      "DELETE FROM capsule_parts WHERE hash = ?1 AND NOT EXISTS (SELECT 1 FROM capsules WHERE stored_hash = ?1)",
    );
    return (hash: string) => {
      whole.run(hash);
      parts.run(hash);
    };
  });

/** The ids of a scope's capsules. */
export const capsulesSql = (order: string, limit: string): string =>
  `SELECT id AS key FROM capsules WHERE organisation_id = ? AND mode = ? ORDER BY ${order} LIMIT ${limit}`;

export const SOURCE_KEYS_SQL =
  "SELECT id AS key FROM source_keys WHERE organisation_id = ? AND removed_at IS NULL ORDER BY id";
