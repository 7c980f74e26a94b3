import { sql } from "drizzle-orm";
import { lazily } from "./lazily.ts";
import type { Connection, Tables } from "./open.ts";
import { appendedOf, excludedOf, placeholdersOf } from "./rows.ts";
import { capsuleParts, capsules } from "./tables/capsules.ts";
import { sourceKeys } from "./tables/directory.ts";

/** How the bodies of answers are written and deleted: those in capsules in parts, those of purchases whole. */

/** Capsules of checks, their bodies, and the keys that may have signed them. */
export function capsuleRows(tables: Tables) {
  const { hash, part, bytes } = capsuleParts;
  return {
    sourceKey: () =>
      tables
        .insert(sourceKeys)
        .values(placeholdersOf(sourceKeys))
        .onConflictDoUpdate({ target: sourceKeys.id, set: excludedOf(sourceKeys, "removedAt") }),
    capsule: () => tables.insert(capsules).values(appendedOf(capsules)),
    // An upload that a crash cut off may have left parts that were compressed otherwise.
    capsulePart: () =>
      tables
        .insert(capsuleParts)
        .values(placeholdersOf(capsuleParts))
        .onConflictDoUpdate({
          target: [hash, part],
          set: { bytes: sql`excluded.${sql.identifier(bytes.name)}` },
        }),
  };
}

/** Deletes a body that no purchase and no capsule keeps. */
export const deletionOfUnkept = (raw: Connection["raw"]) =>
  lazily(() => {
    const whole = raw.prepare<unknown, [string]>(
      `DELETE FROM contents WHERE hash = ?1
         AND NOT EXISTS (SELECT 1 FROM purchases WHERE response_hash = ?1 AND content_bytes > 0)
         AND NOT EXISTS (SELECT 1 FROM capsules WHERE body_hash = ?1)`,
    );
    const parts = raw.prepare<unknown, [string]>(
      "DELETE FROM capsule_parts WHERE hash = ?1 AND NOT EXISTS (SELECT 1 FROM capsules WHERE body_hash = ?1)",
    );
    return (hash: string) => {
      whole.run(hash);
      parts.run(hash);
    };
  });

/** The ids of a scope's capsules. */
export const capsulesSql = (order: string, limit: number): string =>
  `SELECT id AS key FROM capsules WHERE organisation_id = ? AND mode = ? ORDER BY ${order} LIMIT ${limit}`;
