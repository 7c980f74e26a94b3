import { sql } from "drizzle-orm";
import { blob, check, index, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { MODES } from "../../../core/roles.ts";
import { digest, int, modeColumn, oneOf } from "../columns.ts";
import { organisationColumn } from "./directory.ts";

/** What is needed to evaluate checks again. Rows are written once, and deleted the oldest first. */
export const capsules = sqliteTable(
  "capsules",
  {
    position: int("position").primaryKey(),
    id: text("id").notNull().unique(),
    organisationId: organisationColumn(),
    mode: modeColumn(),
    facts: text("facts").notNull(),
    storedHash: text("stored_hash"),
    parts: int("parts").notNull(),
    bytes: int("bytes").notNull(),
    bytesUntil: int("bytes_until").notNull(),
    createdAt: int("created_at").notNull(),
    digest: digest("digest"),
  },
  (t) => [
    // SQLite adds the position, so the oldest and the newest of a scope are at its ends.
    index("capsules_of_scope").on(t.organisationId, t.mode),
    index("capsules_by_creation").on(t.createdAt),
    index("capsules_by_stored_hash").on(t.storedHash).where(sql`${t.storedHash} IS NOT NULL`),
    check("capsules_mode", oneOf(t.mode, MODES)),
    check("capsules_bytes", sql`${t.bytes} > 0 AND ${t.bytesUntil} >= ${t.bytes} AND ${t.parts} >= 0`),
  ],
);

/** Compressed bodies in parts, once for each hash of the whole. */
export const capsuleParts = sqliteTable(
  "capsule_parts",
  {
    hash: text("hash").notNull(),
    part: int("part").notNull(),
    bytes: blob("bytes", { mode: "buffer" }).notNull(),
  },
  (t) => [primaryKey({ columns: [t.hash, t.part] })],
);
