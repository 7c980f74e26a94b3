import type { Database } from "bun:sqlite";
import { desc } from "drizzle-orm";
import type { SignedCheckpoint } from "../../core/log.ts";
import { leafHash } from "../../core/merkle.ts";
import { growingTree, type TileReader } from "../../core/tiles.ts";
import type { Store } from "../store.ts";
import type { CommitQueue } from "./commit.ts";
import type { Connection, Tables } from "./open.ts";
import { prepareWrites } from "./prepared-write.ts";
import { excludedOf, placeholdersOf } from "./rows.ts";
import { logCheckpoints, logTiles } from "./tables/log.ts";

/** The log in its tables: its tiles, and which entry of the trace is which leaf. */

/** How many leaves the log has. The index of leaves answers it at once. */
const SIZE = "SELECT coalesce(max(leaf_index), -1) + 1 AS size FROM trace WHERE leaf_index IS NOT NULL";

export function sizeOfLog(raw: Database): () => number {
  const statement = raw.prepare<{ size: bigint }, []>(SIZE);
  return () => Number(statement.get()?.size ?? 0n);
}

export function tilesOf(raw: Database): TileReader {
  const statement = raw.prepare<{ hashes: Uint8Array }, [number, number]>(
    "SELECT hashes FROM log_tiles WHERE level = ? AND tile = ?",
  );
  return (level, index) => statement.get(level, index)?.hashes ?? null;
}

/** What extends the log, in transactions, so that no two processes give one leaf two entries, or one entry two leaves. */
export function createLogWriter(
  connection: Connection,
  { runBeside }: Pick<CommitQueue, "runBeside">,
): Pick<Store, "extendLog" | "keepCheckpoint"> {
  const writer = logWriter(connection);
  return {
    extendLog: (entriesMax) => runBeside(() => writer.extend(entriesMax)),
    keepCheckpoint: (checkpoint) => runBeside(() => writer.keepCheckpoint(checkpoint)),
  };
}

function logWriter({ raw, tables }: Connection) {
  const statements = lazyStatements(raw, tables);
  return {
    extend(entriesMax: number): number {
      const { entriesWithoutLeaf, giveLeaves, putTile, size, readTile } = statements();
      // Not those after the last leaf: an entry's position says nothing of when it was committed by which process.
      const entries = entriesWithoutLeaf.all(entriesMax);
      if (entries.length === 0) return 0;
      const before = size();
      const tree = growingTree(before, readTile, ({ level, index, hashes }) =>
        putTile.run({ level, tile: index, hashes }),
      );
      for (const { hash } of entries) tree.append(leafHash(hash));
      for (const { first, last, at } of unbroken(entries)) giveLeaves.run(before + at - first, first, last);
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
  };
}

type Entry = { readonly position: bigint; readonly hash: Uint8Array };

/** Positions without a gap, and at which of the entries they begin. */
type Unbroken = { readonly first: number; last: number; readonly at: number };

/** Divides entries into runs of positions without a gap. One statement for each run takes half the time of one for each entry. */
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

/** Prepared at the first use: a start does not wait for them. */
function lazyStatements(raw: Database, tables: Tables) {
  const prepare = () => ({
    entriesWithoutLeaf: raw.prepare<Entry, [number]>(
      "SELECT position, entry_hash AS hash FROM trace WHERE leaf_index IS NULL ORDER BY position LIMIT ?",
    ),
    giveLeaves: raw.prepare<unknown, [number, number, number]>(
      "UPDATE trace SET leaf_index = position + ? WHERE position BETWEEN ? AND ?",
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
