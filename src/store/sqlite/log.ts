import type { Database } from "bun:sqlite";
import type { SignedCheckpoint } from "../../core/log.ts";
import { leafHash } from "../../core/merkle.ts";
import { growingTree, type TileReader } from "../../core/tiles.ts";

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

/** What extends the log. Called in a transaction, so no two processes give one leaf two entries, or one entry two leaves. */
export type LogWriter = {
  extend(entriesMax: number): number;
  keepCheckpoint(checkpoint: SignedCheckpoint): boolean;
};

export function createLogWriter(raw: Database): LogWriter {
  const statements = lazyStatements(raw);
  return {
    extend(entriesMax) {
      const { entriesWithoutLeaf, giveLeaf, putTile, size, readTile } = statements();
      // Not those after the last leaf: an entry's position says nothing of when it was committed by which process.
      const entries = entriesWithoutLeaf.all(entriesMax);
      if (entries.length === 0) return 0;
      const tree = growingTree(size(), readTile, ({ level, index, hashes }) =>
        putTile.run(level, index, hashes),
      );
      for (const { position, hash } of entries) {
        giveLeaf.run(tree.size(), position);
        tree.append(leafHash(hash));
      }
      for (const { level, index, hashes } of tree.changed()) putTile.run(level, index, hashes);
      return entries.length;
    },
    keepCheckpoint({ size, root, note }) {
      const { newest, insertCheckpoint } = statements();
      const last = newest.get();
      if (last !== null && Number(last.size) >= size) return false;
      insertCheckpoint.run((last?.number ?? 0n) + 1n, size, root, note);
      return true;
    },
  };
}

/** Prepared at the first use: a start does not wait for them. */
function lazyStatements(raw: Database) {
  const prepare = () => ({
    entriesWithoutLeaf: raw.prepare<{ position: bigint; hash: Uint8Array }, [number]>(
      "SELECT position, entry_hash AS hash FROM trace WHERE leaf_index IS NULL ORDER BY position LIMIT ?",
    ),
    giveLeaf: raw.prepare<unknown, [number, bigint]>("UPDATE trace SET leaf_index = ? WHERE position = ?"),
    putTile: raw.prepare<unknown, [number, number, Uint8Array]>(
      "INSERT INTO log_tiles (level, tile, hashes) VALUES (?, ?, ?) ON CONFLICT (level, tile) DO UPDATE SET hashes = excluded.hashes",
    ),
    newest: raw.prepare<{ number: bigint; size: bigint }, []>(
      "SELECT number, size FROM log_checkpoints ORDER BY number DESC LIMIT 1",
    ),
    insertCheckpoint: raw.prepare<unknown, [bigint, number, Uint8Array, string]>(
      "INSERT INTO log_checkpoints (number, size, root, note) VALUES (?, ?, ?, ?)",
    ),
    size: sizeOfLog(raw),
    readTile: tilesOf(raw),
  });
  let prepared: ReturnType<typeof prepare> | null = null;
  return () => {
    prepared ??= prepare();
    return prepared;
  };
}
