import { sql } from "drizzle-orm";
import { blob, check, index, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { HASH_BYTES } from "../../../core/merkle.ts";
import { TILE_WIDTH } from "../../../core/tiles.ts";
import { digest, hash, int } from "../columns.ts";

/**
 * The log: the Merkle tree over the trace and the statements of solvency, and what was signed of it (docs/witnesses, "The log"). Which
 * entry is which leaf stands in the trace and in the statements themselves.
 */

/** The hashes of the tree in tiles (C2SP, tlog-tiles). Each level of tiles is eight levels of the tree. */
export const logTiles = sqliteTable(
  "log_tiles",
  {
    level: int("level").notNull(),
    tile: int("tile").notNull(),
    hashes: blob("hashes", { mode: "buffer" }).notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.level, t.tile] }),
    check("log_tiles_place", sql`${t.level} >= 0 AND ${t.tile} >= 0`),
    check(
      "log_tiles_hashes",
      sql`length(${t.hashes}) % ${sql.raw(`${HASH_BYTES}`)} = 0 AND length(${t.hashes}) BETWEEN ${sql.raw(`${HASH_BYTES} AND ${HASH_BYTES * TILE_WIDTH}`)}`,
    ),
  ],
);

/** The signed checkpoints, numbered from 1. */
export const logCheckpoints = sqliteTable("log_checkpoints", {
  number: int("number").primaryKey(),
  size: int("size").notNull().unique(),
  root: hash("root").notNull(),
  /** The signed note, as it was published. */
  note: text("note").notNull(),
  digest: digest("digest"),
});

/** What the ledger owed and the chains held, as it was signed (docs/solvency), numbered from 1. */
export const solvencyStatements = sqliteTable(
  "solvency_statements",
  {
    number: int("number").primaryKey(),
    /** The signed note, as it was published. */
    note: text("note").notNull(),
    /** The secret from which the salts of its leaves follow. */
    seed: hash("seed").notNull(),
    /** The SHA-256 of the note. */
    entryHash: hash("entry_hash").notNull(),
    /** Which leaf of the log it is; null until the log has it. */
    leafIndex: int("leaf_index"),
    digest: digest("digest"),
  },
  (t) => [
    uniqueIndex("solvency_statements_by_leaf").on(t.leafIndex).where(sql`${t.leafIndex} IS NOT NULL`),
    index("solvency_statements_without_leaf").on(t.number).where(sql`${t.leafIndex} IS NULL`),
  ],
);
