import type { LogCheckpoint } from "../../../core/log.ts";
import { consistencyProof, HASH_BYTES, inclusionProof, rootOf } from "../../../core/merkle.ts";
import { nodesOf } from "../../../core/tiles.ts";
import type { SqlDatabase } from "../database.ts";
import { lazily } from "../lazily.ts";
import { ENTRIES, sizeOfLog, tilesOf } from "../log.ts";
import type { SqlReader } from "./sql-reader.ts";

type CheckpointRow = {
  readonly number: bigint;
  readonly size: bigint;
  readonly root: Uint8Array;
  readonly note: string;
};

const checkpointOf = (row: CheckpointRow): LogCheckpoint => ({
  ...{ root: row.root, note: row.note },
  ...{ number: Number(row.number), size: Number(row.size) },
});

const PLACES = `SELECT leaf_index AS leaf,
  (SELECT number FROM log_checkpoints WHERE size > leaf_index ORDER BY size LIMIT 1) AS checkpoint
  FROM trace WHERE warrant = (SELECT position FROM warrants WHERE id = ?) ORDER BY sequence`;

export function createLogReader(raw: SqlDatabase): SqlReader["log"] {
  const readTile = lazily(() => tilesOf(raw));
  const nodes = nodesOf(readTile);
  const entryHashes = lazily(() => {
    const statement = raw.prepare<{ hash: Uint8Array }, [number, number, number]>(
      `${ENTRIES} ORDER BY leaf LIMIT ?3`,
    );
    return (first: number, limit: number) =>
      statement.all(first, first + limit, limit).map(({ hash }) => hash);
  });
  const newest = lazily(() => {
    const statement = raw.prepare<CheckpointRow, []>(
      "SELECT number, size, root, note FROM log_checkpoints ORDER BY number DESC LIMIT 1",
    );
    return () => statement.get();
  });
  const ofSize = lazily(() => {
    const statement = raw.prepare<CheckpointRow, [number]>(
      "SELECT number, size, root, note FROM log_checkpoints WHERE size >= ? ORDER BY size LIMIT 1",
    );
    return (size: number) => statement.get(size);
  });
  const after = lazily(() => {
    const statement = raw.prepare<CheckpointRow, [number, number]>(
      "SELECT number, size, root, note FROM log_checkpoints WHERE number > ? ORDER BY number LIMIT ?",
    );
    return (number: number, limit: number) => statement.all(number, limit);
  });
  const places = lazily(() => {
    const statement = raw.prepare<{ leaf: bigint | null; checkpoint: bigint | null }, [string]>(PLACES);
    return (warrantId: string) => statement.all(warrantId);
  });
  return {
    size: lazily(() => sizeOfLog(raw)),
    root: (size) => rootOf(size, nodes),
    inclusionProof: (index, size) => inclusionProof({ index, size }, nodes),
    consistencyProof: (from, to) => consistencyProof({ from, to }, nodes),
    tile(level, index, width) {
      const hashes = readTile(level, index);
      return hashes === null || hashes.length < width * HASH_BYTES
        ? null
        : hashes.subarray(0, width * HASH_BYTES);
    },
    entryHashes,
    newestCheckpoint() {
      const row = newest();
      return row && checkpointOf(row);
    },
    checkpointsAfter: (number, limit) => after(number, limit).map(checkpointOf),
    checkpointOf(size) {
      const row = ofSize(size);
      return row && checkpointOf(row);
    },
    placesOf: (warrantId) =>
      places(warrantId).map(({ leaf, checkpoint }) => ({
        leafIndex: leaf === null ? null : Number(leaf),
        checkpoint: checkpoint === null ? null : Number(checkpoint),
      })),
  };
}
