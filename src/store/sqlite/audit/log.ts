import type { Database } from "bun:sqlite";
import { formatCheckpoint } from "../../../core/checkpoint.ts";
import { logNameOf } from "../../../core/log.ts";
import { HASH_BYTES, leafHash } from "../../../core/merkle.ts";
import { growingTree, type Tile, widthOf } from "../../../core/tiles.ts";
import { ENTRIES, sizeOfLog, tilesOf } from "../../sql/log.ts";
import { expectSame, inSnapshot } from "./rows.ts";
import type { Did } from "./slices.ts";

type Leaf = { readonly leaf: bigint; readonly hash: Uint8Array };
type Kept = {
  readonly number: bigint;
  readonly size: bigint;
  readonly root: Uint8Array;
  readonly note: string;
};

const LEAVES_AT_ONCE = 10_000;

/**
 * Computes the log anew from its entries, once from the first leaf to the last, and compares its tiles and the
 * roots of its checkpoints. It may grow meanwhile: what is checked is what was there at the beginning. Whether the checkpoints
 * are signed is checked where the keys are (`services/log/audit.ts`).
 */
export function* auditLog(raw: Database, did: Did): Generator<string> {
  const { size, newest } = inSnapshot(raw, () => ({
    size: sizeOfLog(raw)(),
    newest: raw
      .query<{ newest: bigint | null }, []>("SELECT max(number) AS newest FROM log_checkpoints")
      .get()?.newest,
  }));
  yield* auditWidths(raw);
  const readTile = tilesOf(raw);
  const wrongTiles: string[] = [];
  const compare = ({ level, index, hashes }: Tile): void => {
    const kept = readTile(level, index);
    const isSame = kept !== null && Buffer.compare(kept.subarray(0, hashes.length), hashes) === 0;
    if (!isSame) wrongTiles.push(`the log: tile ${index} of level ${level} is not that of its entries`);
  };
  const tree = growingTree(0, () => null, compare);
  const checkpoints = auditedCheckpoints(raw, Number(newest ?? 0n), did);
  let checkpoint = checkpoints.next();
  for (const { leaf, hash } of leavesOf(raw, size, did)) {
    if (Number(leaf) !== tree.size()) {
      yield `the log: no entry is leaf ${tree.size()}`;
      return;
    }
    tree.append(leafHash(hash));
    yield* wrongTiles.splice(0);
    while (!checkpoint.done && Number(checkpoint.value.size) <= tree.size()) {
      const { number, root } = checkpoint.value;
      if (Number(checkpoint.value.size) === tree.size())
        yield* expectSame(`checkpoint ${number}: its root`, root.toHex(), tree.root().toHex());
      yield* auditCheckpoint(raw, checkpoint.value);
      checkpoint = checkpoints.next();
    }
  }
  tree.changed().forEach(compare);
  yield* wrongTiles;
  for (; !checkpoint.done; checkpoint = checkpoints.next())
    yield `checkpoint ${checkpoint.value.number}: is of ${checkpoint.value.size} entries, and the log has ${size}`;
}

/** Checks that there is every tile that there should be, as long as it should be, and no other. */
function* auditWidths(raw: Database): Generator<string> {
  const { size, tiles } = inSnapshot(raw, () => ({
    size: sizeOfLog(raw)(),
    tiles: raw
      .query<{ level: bigint; tile: bigint; bytes: bigint }, []>(
        "SELECT level, tile, length(hashes) AS bytes FROM log_tiles",
      )
      .all(),
  }));
  for (const { level, tile, bytes } of tiles) {
    const place = { level: Number(level), index: Number(tile) };
    yield* expectSame(
      `the log: the hashes in tile ${tile} of level ${level}`,
      Number(bytes) / HASH_BYTES,
      widthOf(place, size),
    );
  }
}

function* leavesOf(raw: Database, size: number, did: Did): Generator<Leaf> {
  const slice = raw.query<Leaf, [bigint, number, number]>(`${ENTRIES} ORDER BY leaf LIMIT ?3`);
  for (let from = -(2n ** 63n); ; ) {
    const leaves = slice.all(from, size, LEAVES_AT_ONCE);
    yield* leaves;
    did(leaves.length);
    const last = leaves.at(-1);
    if (!last || leaves.length < LEAVES_AT_ONCE) return;
    from = last.leaf + 1n;
  }
}

/** In the order of their numbers, which is that of their sizes. */
function* auditedCheckpoints(raw: Database, newest: number, did: Did): Generator<Kept, undefined> {
  const slice = raw.query<Kept, [bigint, number, number]>(
    "SELECT * FROM log_checkpoints WHERE number > ? AND number <= ? ORDER BY number LIMIT ?",
  );
  for (let after = -(2n ** 63n); ; ) {
    const checkpoints = slice.all(after, newest, LEAVES_AT_ONCE);
    yield* checkpoints;
    did(checkpoints.length);
    const last = checkpoints.at(-1);
    if (!last || checkpoints.length < LEAVES_AT_ONCE) return;
    after = last.number;
  }
}

/** Checks that a checkpoint says in its note what its row says, and follows the one before it. */
function* auditCheckpoint(raw: Database, { number, size, root, note }: Kept): Generator<string> {
  const what = `checkpoint ${number}`;
  const before = raw
    .query<{ size: bigint }, [bigint]>("SELECT size FROM log_checkpoints WHERE number = ?")
    .get(number - 1n);
  if (number === 1n ? before !== null : before === null || before.size >= size)
    yield `${what}: does not follow the one before it`;
  const id = raw.query<{ id: string }, []>("SELECT id FROM instances").get()?.id ?? "";
  const said = formatCheckpoint({ origin: logNameOf(id), size: Number(size), root, extensions: [] });
  if (!note.startsWith(`${said}\n`)) yield `${what}: its note is not of its size and root`;
}
