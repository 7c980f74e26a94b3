import { desc } from "drizzle-orm";
import type { SignedCheckpoint } from "../../core/log.ts";
import { leafHash } from "../../core/merkle.ts";
import type { KeptStatement } from "../../core/solvency/statement.ts";
import { growingTree, type TileReader } from "../../core/tiles.ts";
import type { Connection, SqlDatabase, Tables } from "./database.ts";
import { prepareWrites } from "./prepared-write.ts";
import { excludedOf, placeholdersOf } from "./rows.ts";
import { logCheckpoints, logTiles, solvencyStatements } from "./tables/log.ts";

/** The log in its tables: its tiles, and which entry is which leaf. Its entries are those of the trace, and the statements of solvency. */

/** How many leaves the log has. The indexes of leaves answer it at once. */
const SIZE = `SELECT coalesce(max(size), 0) AS size FROM (
  SELECT max(leaf_index) + 1 AS size FROM trace WHERE leaf_index IS NOT NULL
  UNION ALL SELECT max(leaf_index) + 1 FROM solvency_statements WHERE leaf_index IS NOT NULL) AS sizes`;

/** The entries of the log from leaf ?1 up to leaf ?2, without that one. */
export const ENTRIES = `SELECT leaf_index AS leaf, entry_hash AS hash FROM trace WHERE leaf_index >= ?1 AND leaf_index < ?2
  UNION ALL SELECT leaf_index AS leaf, entry_hash AS hash FROM solvency_statements WHERE leaf_index >= ?1 AND leaf_index < ?2`;

export function sizeOfLog(raw: SqlDatabase): () => number {
  const statement = raw.prepare<{ size: bigint }, []>(SIZE);
  return () => Number(statement.get()?.size ?? 0n);
}

export function tilesOf(raw: SqlDatabase): TileReader {
  const statement = raw.prepare<{ hashes: Uint8Array }, [number, number]>(
    "SELECT hashes FROM log_tiles WHERE level = ? AND tile = ?",
  );
  return (level, index) => statement.get(level, index)?.hashes ?? null;
}

/**
 * What extends the log. Each of these runs in a transaction, so that no two processes give one leaf two entries, or one entry two
 * leaves.
 */
export type LogWriter = {
  extend(entriesMax: number): number;
  keepCheckpoint(checkpoint: SignedCheckpoint): boolean;
  keepStatement(statement: KeptStatement): boolean;
};

/** @param isByEntry whether each entry gets its leaf by a statement of its own, which the engine writes together; else each run does */
export function createLogWriter({ raw, tables }: Connection, isByEntry: boolean): LogWriter {
  const statements = lazyStatements(raw, tables);

  function giveLeaves({ giveLeaf, giveRun }: Leaves, entries: readonly Entry[], from: number): void {
    if (isByEntry) for (const [at, { position }] of entries.entries()) giveLeaf.run(from + at, position);
    else for (const { first, last, at } of unbroken(entries)) giveRun.run(from + at - first, first, last);
  }

  return {
    extend(entriesMax: number): number {
      const { ofTrace, ofSolvency, putTile, size, readTile } = statements();
      // Not those after the last leaf: an entry's position says nothing of when it was committed by which process.
      const traced = ofTrace.withoutLeaf.all(entriesMax);
      const stated = traced.length < entriesMax ? ofSolvency.withoutLeaf.all(entriesMax - traced.length) : [];
      const entries = [...traced, ...stated];
      if (entries.length === 0) return 0;
      const before = size();
      const tree = growingTree(before, readTile, ({ level, index, hashes }) =>
        putTile.run({ level, tile: index, hashes }),
      );
      for (const { hash } of entries) tree.append(leafHash(hash));
      giveLeaves(ofTrace, traced, before);
      giveLeaves(ofSolvency, stated, before + traced.length);
      for (const { level, index, hashes } of tree.changed()) putTile.run({ level, tile: index, hashes });
      return entries.length;
    },
    keepCheckpoint({ size, root, note }: SignedCheckpoint): boolean {
      const { newest, insertCheckpoint } = statements();
      const last = newest.get();
      if (last !== undefined && last.size >= size) return false;
      insertCheckpoint({ number: (last?.number ?? 0) + 1, size, root: root.toHex(), note });
      return true;
    },
    keepStatement({ number, note, seed, entryHash }: KeptStatement): boolean {
      const { newestStatement, insertStatement } = statements();
      if (number !== Number(newestStatement.get()?.number ?? 0n) + 1) return false;
      insertStatement({ number, note, seed, entryHash, leafIndex: null });
      return true;
    },
  };
}

type Entry = { readonly position: bigint; readonly hash: Uint8Array };

/** Positions without a gap, and at which of the entries they begin. */
type Unbroken = { readonly first: number; last: number; readonly at: number };

/** Divides entries into runs of positions without a gap. In SQLite, one statement for each run takes half the time of one for each entry. */
function unbroken(entries: readonly Entry[]): readonly Unbroken[] {
  const runs: Unbroken[] = [];
  for (const [at, entry] of entries.entries()) {
    const position = Number(entry.position);
    const run = runs.at(-1);
    if (run?.last === position - 1) run.last = position;
    else runs.push({ first: position, last: position, at });
  }
  return runs;
}

/** How the entries of a table become leaves, in the order of a column. */
const leavesIn = (raw: SqlDatabase, table: string, order: string) => ({
  withoutLeaf: raw.prepare<Entry, [number]>(
    `SELECT ${order} AS position, entry_hash AS hash FROM ${table} WHERE leaf_index IS NULL ORDER BY ${order} LIMIT ?`,
  ),
  giveRun: raw.prepare<unknown, [number, number, number]>(
    `UPDATE ${table} SET leaf_index = ${order} + ? WHERE ${order} BETWEEN ? AND ?`,
  ),
  giveLeaf: raw.prepare<unknown, [number, bigint]>(
    `update "${table}" set "leaf_index" = ? where "${order}" = ?`,
  ),
});
type Leaves = ReturnType<typeof leavesIn>;

/** Prepared at the first use: a start does not wait for them. */
function lazyStatements(raw: SqlDatabase, tables: Tables) {
  const prepare = () => ({
    ofTrace: leavesIn(raw, "trace", "position"),
    ofSolvency: leavesIn(raw, "solvency_statements", "number"),
    newestStatement: raw.prepare<{ number: bigint | null }, []>(
      "SELECT max(number) AS number FROM solvency_statements",
    ),
    putTile: tables
      .insert(logTiles)
      .values(placeholdersOf(logTiles))
      .onConflictDoUpdate({ target: [logTiles.level, logTiles.tile], set: excludedOf(logTiles, "hashes") })
      .prepare(),
    newest: {
      get: () => tables.select().from(logCheckpoints).orderBy(desc(logCheckpoints.number)).limit(1).get(),
    },
    ...prepareWrites(raw, {
      insertCheckpoint: () => tables.insert(logCheckpoints).values(placeholdersOf(logCheckpoints)),
      insertStatement: () => tables.insert(solvencyStatements).values(placeholdersOf(solvencyStatements)),
    }),
    size: sizeOfLog(raw),
    readTile: tilesOf(raw),
  });
  let prepared: ReturnType<typeof prepare> | null = null;
  return () => {
    prepared ??= prepare();
    return prepared;
  };
}
