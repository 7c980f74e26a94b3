import { sql } from "drizzle-orm";
import { blob, check, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { HASH_BYTES } from "../../../core/merkle.ts";
import { TILE_WIDTH } from "../../../core/tiles.ts";
import { digest, hash, int } from "../columns.ts";

/**
 * The log: the Merkle tree over the trace, and what was signed of it (docs/witnesses, "The log"). Which entry is which leaf stands in the
 * trace itself.
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
