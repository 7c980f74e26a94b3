import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  consistencyProof,
  EMPTY_ROOT,
  type Hash,
  inclusionProof,
  leafHash,
  type NodeReader,
  nodeHash,
  rootOf,
  verifyConsistency,
  verifyInclusion,
} from "../../src/core/merkle.ts";

const hex = (hash: Uint8Array) => Buffer.from(hash).toString("hex");
const bytes = (text: string) => new Uint8Array(Buffer.from(text, "hex"));

/** The tree that the certificate-transparency project tests with (transparency-dev/merkle, testonly; google/certificate-transparency, merkle_tree_test.cc). */
const LEAVES = [
  "",
  "00",
  "10",
  "2021",
  "3031",
  "40414243",
  "5051525354555657",
  "606162636465666768696a6b6c6d6e6f",
].map((data) => leafHash(bytes(data)));
const NODES = [
  [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
    "0298d122906dcfc10892cb53a73992fc5b9f493ea4c9badb27b791b4127a7fe7",
    "07506a85fd9dd2f120eb694f86011e5bb4662e5c415a62917033d4a9624487e7",
    "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    "4271a26be0d8a84f0bd54c8c302e7cb3a3b5d1fa6780a40bcce2873477dab658",
    "b08693ec2e721597130641e8211e7eedccb4c26413963eee6c1e2ed16ffb1a5f",
    "46f6ffadd3d06a09ff3c5860d2755c8b9819db7df44251788c7d8e3180de8eb1",
  ],
  [
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
    "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
    "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
  ],
  [
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
  ],
  ["5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"],
];
const ROOTS = [
  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
  "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
  "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
  "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
  "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
  "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
  "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
  "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
];
const INCLUSION: readonly (readonly [index: number, size: number, proof: readonly string[]])[] = [
  [0, 1, []],
  [
    0,
    8,
    [
      "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
      "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
      "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ],
  ],
  [
    5,
    8,
    [
      "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
      "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
      "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
  ],
  [2, 3, ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"]],
  [
    1,
    5,
    [
      "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
      "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
      "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
  ],
];
const CONSISTENCY: readonly (readonly [from: number, to: number, proof: readonly string[]])[] = [
  [1, 1, []],
  [
    1,
    8,
    [
      "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
      "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
      "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ],
  ],
  [
    6,
    8,
    [
      "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
      "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
      "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
  ],
  [
    2,
    5,
    [
      "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
      "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
  ],
  [
    6,
    7,
    [
      "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
      "b08693ec2e721597130641e8211e7eedccb4c26413963eee6c1e2ed16ffb1a5f",
      "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
  ],
];

const published: NodeReader = (level, index) => bytes(NODES[level]?.[index] ?? "");

describe("the published tree of eight leaves", () => {
  test("has the published hashes", () => {
    expect(LEAVES.map(hex)).toEqual(NODES[0] ?? []);
    expect(NODES.slice(1).flat()).toEqual(
      NODES.slice(1).flatMap((nodes, level) =>
        nodes.map((_, index) => hex(nodeHash(published(level, 2 * index), published(level, 2 * index + 1)))),
      ),
    );
  });

  test("has the published roots at each size", () => {
    expect(ROOTS.map((_, size) => hex(rootOf(size, published)))).toEqual(ROOTS);
  });

  for (const [index, size, proof] of INCLUSION) {
    test(`proves leaf ${index} of ${size} as published`, () => {
      const root = bytes(ROOTS[size] ?? "");
      const leaf = published(0, index);
      expect(inclusionProof({ index, size }, published).map(hex)).toEqual([...proof]);
      expect(verifyInclusion({ index, size, leaf, proof: proof.map(bytes), root })).toBe(true);
    });
  }

  for (const [from, to, proof] of CONSISTENCY) {
    test(`proves that ${from} leaves became ${to} as published`, () => {
      const [fromRoot, toRoot] = [bytes(ROOTS[from] ?? ""), bytes(ROOTS[to] ?? "")];
      expect(consistencyProof({ from, to }, published).map(hex)).toEqual([...proof]);
      expect(verifyConsistency({ from, to, fromRoot, toRoot, proof: proof.map(bytes) })).toBe(true);
    });
  }
});

/** The definitions of RFC 6962, section 2.1, word for word: MTH, PATH, PROOF and SUBPROOF. */
const below = (size: number) => 2 ** Math.ceil(Math.log2(size) - 1);
const mth = (leaves: readonly Hash[]): Hash => {
  if (leaves.length === 0) return EMPTY_ROOT;
  const [only] = leaves;
  if (leaves.length === 1 && only) return only;
  const k = below(leaves.length);
  return nodeHash(mth(leaves.slice(0, k)), mth(leaves.slice(k)));
};
const path = (m: number, leaves: readonly Hash[]): Hash[] => {
  if (leaves.length === 1) return [];
  const k = below(leaves.length);
  return m < k
    ? [...path(m, leaves.slice(0, k)), mth(leaves.slice(k))]
    : [...path(m - k, leaves.slice(k)), mth(leaves.slice(0, k))];
};
const subproof = (m: number, leaves: readonly Hash[], isWhole: boolean): Hash[] => {
  if (m === leaves.length) return isWhole ? [] : [mth(leaves)];
  const k = below(leaves.length);
  return m <= k
    ? [...subproof(m, leaves.slice(0, k), isWhole), mth(leaves.slice(k))]
    : [...subproof(m - k, leaves.slice(k), false), mth(leaves.slice(0, k))];
};

const SIZE_MAX = 40;
const ALL = Array.from({ length: SIZE_MAX }, (_, index) => leafHash(new Uint8Array([index])));
/** Counts the reads, and refuses to read past the tree's end. */
function readerOf(size: number): { read: NodeReader; reads: () => number } {
  let count = 0;
  const read: NodeReader = (level, index) => {
    count += 1;
    const [start, end] = [index * 2 ** level, (index + 1) * 2 ** level];
    if (end > size) throw new Error(`node ${level}, ${index} is not complete at ${size}`);
    return mth(ALL.slice(start, end));
  };
  return { read, reads: () => count };
}

describe("a tree of any size", () => {
  test("has the roots and proofs of the definition, from a few nodes each", () => {
    for (let size = 1; size <= SIZE_MAX; size++) {
      const leaves = ALL.slice(0, size);
      const few = 2 * Math.ceil(Math.log2(size)) + 1;
      for (let at = 0; at < size; at++) {
        const { read, reads } = readerOf(size);
        expect(inclusionProof({ index: at, size }, read)).toEqual(path(at, leaves));
        expect(reads()).toBeLessThanOrEqual(few);
        const other = readerOf(size);
        expect(consistencyProof({ from: at + 1, to: size }, other.read)).toEqual(
          subproof(at + 1, leaves, true),
        );
        expect(other.reads()).toBeLessThanOrEqual(few);
      }
      expect(rootOf(size, readerOf(size).read)).toEqual(mth(leaves));
    }
  });

  test("verifies what it proves", () => {
    for (let size = 1; size <= SIZE_MAX; size++) {
      const { read } = readerOf(size);
      const root = rootOf(size, read);
      for (let at = 0; at < size; at++) {
        const leaf = read(0, at);
        const proof = inclusionProof({ index: at, size }, read);
        expect(verifyInclusion({ index: at, size, leaf, proof, root })).toBe(true);
        const from = { from: at + 1, fromRoot: rootOf(at + 1, read) };
        const kept = consistencyProof({ from: at + 1, to: size }, read);
        expect(verifyConsistency({ ...from, to: size, toRoot: root, proof: kept })).toBe(true);
      }
      const empty = { from: 0, fromRoot: EMPTY_ROOT, to: size, toRoot: root };
      expect(verifyConsistency({ ...empty, proof: [] })).toBe(true);
      expect(verifyConsistency({ ...empty, fromRoot: root, proof: [] })).toBe(false);
      expect(verifyConsistency({ ...empty, proof: [root] })).toBe(false);
    }
  });

  test("has no proof of a leaf or a size that it does not have", () => {
    const { read } = readerOf(5);
    expect(() => inclusionProof({ index: 5, size: 5 }, read)).toThrow("no leaf 5");
    expect(() => inclusionProof({ index: -1, size: 5 }, read)).toThrow("no leaf -1");
    expect(() => consistencyProof({ from: 6, to: 5 }, read)).toThrow("did not have 6");
  });

  test("has more than 2 ** 31 leaves without a bit lost", () => {
    const size = 2 ** 40 + 3;
    const index = 2 ** 33 + 1;
    const read: NodeReader = (level, at) => leafHash(Buffer.from(`${level}/${at}`));
    // Made-up nodes do not hash to each other, but each proof climbs to a root of its own.
    const proof = inclusionProof({ index, size }, read);
    expect(proof.length).toBe(41);
    let hash = read(0, index);
    for (const [level, sibling] of proof.slice(0, 40).entries())
      hash = Math.floor(index / 2 ** level) % 2 === 1 ? nodeHash(sibling, hash) : nodeHash(hash, sibling);
    const root = nodeHash(hash, proof[40] ?? EMPTY_ROOT);
    expect(verifyInclusion({ index, size, leaf: read(0, index), proof, root })).toBe(true);
  });
});

/** A proof with one bit changed, a hash missing, doubled or in another order, or a hash too short. */
const damage = fc
  .record({ at: fc.nat(), bit: fc.nat(255), way: fc.constantFrom("flip", "drop", "repeat", "swap", "cut") })
  .map(({ at, bit, way }) => (proof: readonly Hash[]): Hash[] => {
    const copy = proof.map((hash) => new Uint8Array(hash));
    const place = copy.length === 0 ? 0 : at % copy.length;
    const hash = copy[place] ?? new Uint8Array(32);
    if (way === "flip") hash[bit >> 3] = (hash[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    if (way === "drop") copy.splice(place, 1);
    if (way === "repeat") copy.splice(place, 0, new Uint8Array(hash));
    if (way === "swap") copy.push(...copy.splice(place, 1));
    if (way === "cut") copy[place] = hash.slice(0, 31);
    return copy;
  });
const isSame = (one: readonly Hash[], other: readonly Hash[]) =>
  one.map(hex).join() === other.map(hex).join();

describe("a verifier", () => {
  const treesAndLeaves = fc.integer({ min: 1, max: SIZE_MAX }).chain((size) =>
    fc.record({
      size: fc.constant(size),
      at: fc.nat(size - 1),
      otherSize: fc.nat(SIZE_MAX + 1),
      otherAt: fc.nat(SIZE_MAX),
    }),
  );

  test("accepts no inclusion of anything altered", () => {
    fc.assert(
      fc.property(treesAndLeaves, damage, ({ size, at, otherSize, otherAt }, change) => {
        const { read } = readerOf(size);
        const given = {
          index: at,
          size,
          leaf: read(0, at),
          proof: inclusionProof({ index: at, size }, read),
        };
        const root = rootOf(size, read);
        if (otherAt !== at) expect(verifyInclusion({ ...given, root, index: otherAt })).toBe(false);
        expect(verifyInclusion({ ...given, root, leaf: leafHash(new Uint8Array([255])) })).toBe(false);
        expect(verifyInclusion({ ...given, root: leafHash(root) })).toBe(false);
        expect(verifyInclusion({ ...given, root, index: at + 0.5 })).toBe(false);
        expect(verifyInclusion({ ...given, root, index: -1 })).toBe(false);
        const isSameWay = sidesOf(at, size) === sidesOf(at, otherSize);
        if (!isSameWay) expect(verifyInclusion({ ...given, root, size: otherSize })).toBe(false);
        const proof = change(given.proof);
        if (!isSame(proof, given.proof)) expect(verifyInclusion({ ...given, root, proof })).toBe(false);
      }),
    );
  });

  test("accepts no history of anything altered", () => {
    fc.assert(
      fc.property(treesAndLeaves, damage, ({ size, at }, change) => {
        const { read } = readerOf(size);
        const from = at + 1;
        const given = { from, to: size, fromRoot: rootOf(from, read), toRoot: rootOf(size, read) };
        const proof = consistencyProof({ from, to: size }, read);
        const other = leafHash(given.toRoot);
        expect(verifyConsistency({ ...given, proof, fromRoot: other })).toBe(false);
        expect(verifyConsistency({ ...given, proof, toRoot: other })).toBe(false);
        expect(verifyConsistency({ ...given, proof, from: size + 1 })).toBe(false);
        expect(verifyConsistency({ ...given, proof, from: from - 0.5 })).toBe(false);
        const changed = change(proof);
        if (!isSame(changed, proof)) expect(verifyConsistency({ ...given, proof: changed })).toBe(false);
      }),
    );
  });
});

/** On which side each sibling is on the way up. Two sizes with the same way have the same proof of a leaf. */
function sidesOf(index: number, size: number): string {
  if (index >= size) return "none";
  let [start, end, sides] = [0, size, ""];
  while (end - start > 1) {
    const middle = start + below(end - start);
    sides = (index < middle ? "R" : "L") + sides;
    if (index < middle) end = middle;
    else start = middle;
  }
  return sides;
}
