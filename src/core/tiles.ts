import { growingEdge, HASH_BYTES, type Hash, type NodeReader, nodeHash } from "./merkle.ts";

/**
 * A Merkle tree in tiles (C2SP, tlog-tiles): each tile has up to 256 hashes of one level, one after the other. Every eighth
 * level of the tree is kept; the levels between are computed from them. A tile only grows, and one that is full never changes.
 */

export const TILE_WIDTH = 256;
const TILE_HEIGHT = 8;

export type Tile = { readonly level: number; readonly index: number; readonly hashes: Uint8Array };

/** The hashes that a tile has so far; null where there is no such tile. */
export type TileReader = (level: number, index: number) => Uint8Array | null;

/** How many hashes a level of tiles has in a tree of that size. */
export const hashesAt = (level: number, size: number): number => Math.floor(size / TILE_WIDTH ** level);

/** How many hashes of a tile are there in a tree of that size: 0 where the tree does not reach it. */
export const widthOf = ({ level, index }: Pick<Tile, "level" | "index">, size: number): number =>
  Math.min(TILE_WIDTH, Math.max(0, hashesAt(level, size) - index * TILE_WIDTH));

/**
 * Any node of the tree, computed from the tile that has it or what is below it.
 *
 * @throws where the tile does not have it
 */
export const nodesOf =
  (readTile: TileReader): NodeReader =>
  (level, index) => {
    const width = 2 ** (level % TILE_HEIGHT);
    const first = index * width;
    const tile = Math.floor(first / TILE_WIDTH);
    const start = first % TILE_WIDTH;
    const hashes = readTile(Math.floor(level / TILE_HEIGHT), tile) ?? new Uint8Array();
    if (hashes.length < (start + width) * HASH_BYTES)
      throw new Error(`the log does not have the node ${index} of level ${level}`);
    return rootOfHashes(hashes.subarray(start * HASH_BYTES, (start + width) * HASH_BYTES));
  };

/** The root over hashes whose number is a power of two. */
function rootOfHashes(hashes: Uint8Array): Hash {
  let nodes: Hash[] = Array.from({ length: hashes.length / HASH_BYTES }, (_, at) =>
    hashes.slice(at * HASH_BYTES, (at + 1) * HASH_BYTES),
  );
  while (nodes.length > 1) {
    const below = nodes;
    nodes = Array.from({ length: below.length / 2 }, (_, at) =>
      nodeHash(below[2 * at] as Hash, below[2 * at + 1] as Hash),
    );
  }
  return nodes[0] as Hash;
}

/** A tile that may still get hashes. */
type OpenTile = { readonly index: number; readonly hashes: Uint8Array; width: number; isChanged: boolean };

/**
 * A tree that leaves are appended to. It holds one tile of each level: those at its right edge.
 *
 * @param size how many leaves it has
 * @param readTile the tiles that it has
 * @param onFull is given each tile that becomes full
 */
export function growingTree(size: number, readTile: TileReader, onFull: (tile: Tile) => void) {
  const edge: OpenTile[] = [];
  const subtrees = size === 0 ? growingEdge() : null;
  let leaves = size;

  function openTile(level: number, count: number): OpenTile {
    const index = Math.floor(count / TILE_WIDTH);
    const known = edge[level];
    if (known?.index === index) return known;
    const width = count % TILE_WIDTH;
    const hashes = new Uint8Array(TILE_WIDTH * HASH_BYTES);
    if (width > 0) {
      const kept = readTile(level, index);
      if (kept?.length !== width * HASH_BYTES)
        throw new Error(`tile ${index} of level ${level} does not have ${width} hashes`);
      hashes.set(kept);
    }
    const tile = { index, hashes, width, isChanged: false };
    edge[level] = tile;
    return tile;
  }

  const shown = (level: number, { index, hashes, width }: OpenTile): Tile => ({
    ...{ level, index },
    hashes: hashes.subarray(0, width * HASH_BYTES),
  });

  return {
    append(leaf: Hash): void {
      let hash = leaf;
      subtrees?.append(leaf);
      for (let level = 0; ; level++) {
        const tile = openTile(level, hashesAt(level, leaves));
        tile.hashes.set(hash, tile.width * HASH_BYTES);
        tile.width += 1;
        tile.isChanged = true;
        if (tile.width < TILE_WIDTH) break;
        tile.isChanged = false;
        onFull(shown(level, tile));
        hash = subtrees?.completed(TILE_HEIGHT * (level + 1)) ?? rootOfHashes(tile.hashes);
      }
      leaves += 1;
    },
    size: () => leaves,
    /** The root of the tree. Only where it was grown from the first leaf on. */
    root(): Hash {
      if (!subtrees) throw new Error("this tree was not grown from its first leaf on");
      return subtrees.root();
    },
    /** The tiles that are not full and have got hashes. */
    changed: (): readonly Tile[] =>
      edge.flatMap((tile, level) => (tile.isChanged ? [shown(level, tile)] : [])),
  };
}
