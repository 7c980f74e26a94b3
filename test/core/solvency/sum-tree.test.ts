import { describe, expect, test } from "bun:test";
import { EMPTY_ROOT, leafHash } from "../../../src/core/merkle.ts";
import { AMOUNT_MAX } from "../../../src/core/money.ts";
import {
  type BuiltTree,
  createSumTree,
  rootOver,
  type Sibling,
  type SumNode,
} from "../../../src/core/solvency/sum-tree.ts";

const sha256 = (...parts: readonly Uint8Array[]): Uint8Array =>
  new Uint8Array(new Bun.CryptoHasher("sha256").update(Buffer.concat(parts)).digest());

/** 16 bytes, the highest first. */
const bytesOf = (sum: bigint): Uint8Array => Uint8Array.fromHex(sum.toString(16).padStart(32, "0"));

/** The tree as the documentation says it, from the top: at least half of the leaves, a power of two, are on the left. */
function rootOf(leaves: readonly SumNode[]): SumNode {
  const [only, second] = leaves;
  if (only === undefined) return { hash: EMPTY_ROOT, sum: 0n };
  if (second === undefined) return only;
  let split = 1;
  while (split * 2 < leaves.length) split *= 2;
  const [left, right] = [rootOf(leaves.slice(0, split)), rootOf(leaves.slice(split))];
  return {
    hash: sha256(Uint8Array.of(1), left.hash, bytesOf(left.sum), right.hash, bytesOf(right.sum)),
    sum: left.sum + right.sum,
  };
}

const leafAt = (index: number, sum = BigInt(index) * 7n): SumNode => ({
  hash: leafHash(new TextEncoder().encode(`leaf ${index}`)),
  sum,
});

const inOrderOfHashes = (leaves: readonly SumNode[]): readonly SumNode[] =>
  leaves.toSorted((one, other) => Buffer.compare(one.hash, other.hash));

function built(leaves: readonly SumNode[], of: Uint8Array | null = null): BuiltTree {
  const tree = createSumTree();
  for (const leaf of leaves) tree.add(leaf);
  return finished(tree.build(of));
}

function finished(building: Generator<undefined, BuiltTree>): BuiltTree {
  for (;;) {
    const { done, value } = building.next();
    if (done) return value;
  }
}

const same = (one: SumNode, other: SumNode): boolean =>
  one.sum === other.sum && Buffer.compare(one.hash, other.hash) === 0;

const leads = (leaf: SumNode, path: readonly Sibling[], root: SumNode): boolean =>
  same(rootOver(leaf, path), root);

describe.each([0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 100, 128])("a tree of %d leaves", (count) => {
  const leaves = Array.from({ length: count }, (_, index) => leafAt(index));

  test("has the root of its leaves in the order of their hashes, whatever their order", () => {
    const expected = rootOf(inOrderOfHashes(leaves));
    expect(built(leaves)).toEqual({ root: expected, leaves: count, path: null });
    expect(built(leaves.toReversed()).root).toEqual(expected);
    expect(expected.sum).toBe(leaves.reduce((sum, leaf) => sum + leaf.sum, 0n));
  });

  test("proves each leaf, and no other", () => {
    for (const [index, leaf] of leaves.entries()) {
      const { root, path } = built(leaves, leaf.hash);
      expect(leads(leaf, path!, root)).toBeTrue();
      expect(leads({ ...leaf, sum: leaf.sum + 1n }, path!, root)).toBeFalse();
      expect(leads(leafAt(index + 1_000), path!, root)).toBeFalse();
    }
    expect(built(leaves, leafAt(count).hash).path).toBeNull();
  });
});

test("a proof of which anything is changed leads elsewhere", () => {
  const leaves = Array.from({ length: 37 }, (_, index) => leafAt(index));
  for (const leaf of leaves) {
    const { root, path } = built(leaves, leaf.hash);
    for (const [at, step] of path!.entries()) {
      const changed = (to: Partial<Sibling>) => path!.with(at, { ...step, ...to });
      expect(leads(leaf, changed({ side: step.side === "left" ? "right" : "left" }), root)).toBeFalse();
      expect(leads(leaf, changed({ sum: step.sum + 1n }), root)).toBeFalse();
      for (let byte = 0; byte < 32; byte++) {
        const hash = step.hash.slice();
        hash[byte] = hash[byte]! ^ 1;
        expect(leads(leaf, changed({ hash }), root)).toBeFalse();
      }
      expect(leads(leaf, path!.toSpliced(at, 1), root)).toBeFalse();
      expect(leads(leaf, path!.toSpliced(at, 0, step), root)).toBeFalse();
    }
  }
});

test("what one sibling takes and another gives does not stay hidden", () => {
  const leaves = Array.from({ length: 16 }, (_, index) => leafAt(index, 100n));
  const { root, path } = built(leaves, leaves[3]!.hash);
  const [first, second, ...rest] = path!;
  const moved = [{ ...first!, sum: first!.sum - 50n }, { ...second!, sum: second!.sum + 50n }, ...rest];
  expect(rootOver(leaves[3]!, moved).sum).toBe(root.sum);
  expect(leads(leaves[3]!, moved, root)).toBeFalse();
});

test("sums do not wrap, and no amount is negative", () => {
  const largest = Array.from({ length: 9 }, (_, index) => leafAt(index, AMOUNT_MAX));
  const { root, path } = built(largest, largest[4]!.hash);
  expect(root).toEqual(rootOf(inOrderOfHashes(largest)));
  expect(root.sum).toBe(9n * AMOUNT_MAX);
  expect(leads(largest[4]!, path!, root)).toBeTrue();
  const tree = createSumTree();
  expect(() => tree.add(leafAt(0, -1n))).toThrow(RangeError);
  expect(() => tree.add(leafAt(0, AMOUNT_MAX + 1n))).toThrow(RangeError);
  const beside = (sum: bigint): readonly Sibling[] => [{ ...leafAt(1), side: "left", sum }];
  expect(() => rootOver(leafAt(0, 7n), beside(-7n))).toThrow(RangeError);
  expect(() => rootOver(leafAt(0, 7n), beside(2n ** 128n - 7n))).toThrow(RangeError);
  expect(() => rootOver(leafAt(0, 7n), beside(2n ** 128n))).toThrow(RangeError);
});

test("random trees are what the documentation says", () => {
  for (let round = 0; round < 60; round++) {
    const count = 1 + Math.floor(Math.random() * 400);
    const leaves = Array.from({ length: count }, () => ({
      hash: crypto.getRandomValues(new Uint8Array(32)),
      sum: crypto.getRandomValues(new BigUint64Array(1))[0]! >> 1n,
    }));
    const leaf = leaves[Math.floor(Math.random() * count)]!;
    const { root, path } = built(leaves, leaf.hash);
    expect(root).toEqual(rootOf(inOrderOfHashes(leaves)));
    expect(leads(leaf, path!, root)).toBeTrue();
    expect(path!.length).toBeLessThanOrEqual(Math.ceil(Math.log2(count)));
  }
});

test("a million leaves are built in short steps", () => {
  const tree = createSumTree();
  const hash = new Uint8Array(32);
  const view = new DataView(hash.buffer);
  let wanted: SumNode | null = null;
  for (let index = 0; index < 1_000_000; index++) {
    view.setUint32(28, index);
    const leaf = { hash: sha256OfShort(hash), sum: BigInt(index) };
    if (index === 765_432) wanted = leaf;
    tree.add(leaf);
  }
  const building = tree.build(wanted!.hash);
  for (let steps = 1; ; steps++) {
    const { done, value } = building.next();
    if (!done) continue;
    expect(value.leaves).toBe(1_000_000);
    expect(value.root.sum).toBe(499_999_500_000n);
    expect(leads(wanted!, value.path!, value.root)).toBeTrue();
    // Of 0.8 s of work, so each takes about a millisecond.
    expect(steps).toBeGreaterThan(600);
    break;
  }
}, 60_000);

const sha256OfShort = (bytes: Uint8Array): Uint8Array => Bun.SHA256.hash(bytes) as Uint8Array;
