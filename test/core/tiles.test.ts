import { describe, expect, test } from "bun:test";
import { HASH_BYTES, leafHash, nodeHash, rootOf } from "../../src/core/merkle.ts";
import { growingTree, hashesAt, nodesOf, type Tile, type TileReader, widthOf } from "../../src/core/tiles.ts";

const leaf = (index: number) => leafHash(Buffer.from(`${index}`));

/** Tiles in memory. */
function store() {
  const kept = new Map<string, Uint8Array>();
  const keep = ({ level, index, hashes }: Tile) => void kept.set(`${level}/${index}`, hashes.slice());
  const read: TileReader = (level, index) => kept.get(`${level}/${index}`) ?? null;
  return { kept, keep, read };
}

/** A root computed leaf by leaf, without a tile. */
function rootBelow(start: number, end: number): Uint8Array {
  if (end - start === 1) return leaf(start);
  let middle = 1;
  while (middle * 2 < end - start) middle *= 2;
  return nodeHash(rootBelow(start, start + middle), rootBelow(start + middle, end));
}

describe("a growing tree", () => {
  test("keeps the same tiles, however many leaves it gets at a time", () => {
    const size = 70_000;
    const [whole, inSteps] = [store(), store()];
    const tree = growingTree(0, whole.read, whole.keep);
    for (let index = 0; index < size; index++) tree.append(leaf(index));
    tree.changed().forEach(whole.keep);
    for (let done = 0; done < size; ) {
      const part = growingTree(done, inSteps.read, inSteps.keep);
      for (const end = Math.min(size, done + 1 + (done % 997)); done < end; done++) part.append(leaf(done));
      part.changed().forEach(inSteps.keep);
      expect(part.size()).toBe(done);
    }
    expect(inSteps.kept).toEqual(whole.kept);
    // C2SP tlog-tiles gives the tiles of this size as its example.
    const full = Array.from({ length: 273 }, (_, index) => [`0/${index}`, 256] as const);
    const widths = [...full, ["0/273", 112], ["1/0", 256], ["1/1", 17], ["2/0", 1]] as const;
    expect(new Map([...whole.kept].map(([name, { length }]) => [name, length / HASH_BYTES]))).toEqual(
      new Map(widths),
    );
    for (const [name, width] of widths) {
      const [level = 0, index = 0] = name.split("/").map(Number);
      expect(widthOf({ level, index }, size)).toBe(width);
    }
    expect(widthOf({ level: 0, index: 274 }, size)).toBe(0);
    expect(widthOf({ level: 3, index: 0 }, size)).toBe(0);
    expect(hashesAt(1, size)).toBe(273);
    const root = rootBelow(0, size);
    expect(tree.root()).toEqual(root);
    expect(rootOf(size, nodesOf(inSteps.read))).toEqual(root);
  });

  test("has the root of every size on its way", () => {
    const { keep, read } = store();
    const tree = growingTree(0, read, keep);
    for (let size = 1; size <= 600; size++) {
      tree.append(leaf(size - 1));
      if (size < 4 || size % 64 < 2 || size > 590) expect(tree.root()).toEqual(rootBelow(0, size));
    }
  });

  test("reads one tile of each level at most to go on, however many leaves it has", () => {
    for (const size of [1, 255, 256, 70_000, 2 ** 24 - 1, 2 ** 24 + 2 ** 16 + 300, 2 ** 40 + 12_345]) {
      const levels: number[] = [];
      const read: TileReader = (level, index) => {
        levels.push(level);
        return new Uint8Array(widthOf({ level, index }, size) * HASH_BYTES);
      };
      const tree = growingTree(size, read, () => {});
      for (let more = 0; more < 600; more++) tree.append(leaf(more));
      expect(tree.size()).toBe(size + 600);
      expect(levels).toEqual([...new Set(levels)]);
      expect(Math.max(...levels)).toBeLessThanOrEqual(Math.log2(size) / 8);
    }
  });

  test("does not go on from tiles that are not of its size", () => {
    const { keep, read } = store();
    const tree = growingTree(0, read, keep);
    for (const index of [0, 1, 2]) tree.append(leaf(index));
    tree.changed().forEach(keep);
    for (const size of [2, 4]) {
      const other = growingTree(size, read, keep);
      expect(() => other.append(leaf(size))).toThrow(`tile 0 of level 0 does not have ${size} hashes`);
    }
    expect(() => growingTree(2, read, keep).root()).toThrow("this tree was not grown from its first leaf on");
    expect(() => nodesOf(read)(0, 3)).toThrow("the log does not have the node 3 of level 0");
    expect(() => nodesOf(read)(2, 0)).toThrow("the log does not have the node 0 of level 2");
  });
});
