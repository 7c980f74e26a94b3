import { EMPTY_ROOT, HASH_BYTES, type Hash } from "../merkle.ts";
import { AMOUNT_MAX } from "../money.ts";

/**
 * A Merkle sum tree (docs/solvency, "The tree"): each node has the sum of the leaves below it, and its hash is of the hashes and
 * the sums of its two children. So whoever finds a leaf under a root knows that the root's sum contains it.
 *
 * The shape is that of RFC 6962: pairs from the left, level by level, and a node without a sibling moves up as it is. A node's hash
 * is the SHA-256 of `01`, then the hash (32 bytes) and the sum (16 bytes, big-endian, unsigned) of the left child, then those of the right.
 */
export type SumNode = { readonly hash: Hash; readonly sum: bigint };

/** A node's sibling on the way up, and the side on which it stands. */
export type Sibling = SumNode & { readonly side: "left" | "right" };

/** What was built: the root, how many leaves it has, and the way up from the leaf that was asked for; null where there is no such leaf. */
export type BuiltTree = {
  readonly root: SumNode;
  readonly leaves: number;
  readonly path: readonly Sibling[] | null;
};

/** A sum is at least 0, and fits 16 bytes. */
export const isSum = (sum: bigint): boolean => sum >= 0n && sum < 2n ** 128n;

const SUM_BYTES = 16;
const NODE_BYTES = HASH_BYTES + SUM_BYTES;
const NODE_PREFIX = 1;
/** The leaves are put in order by these first bytes of their hashes, and then within them. */
const BUCKETS = 2 ** 16;
/** How many leaves are in one part of the memory: of about a megabyte. */
const PART = 2 ** 14;
/** How many hashes are computed between two pauses: a few milliseconds. */
const STEP = 2_048;

/**
 * The root to which a leaf and its siblings lead.
 *
 * @throws where an amount is negative, or a sum too large
 */
export function rootOver(leaf: SumNode, path: readonly Sibling[]): SumNode {
  const nodes = new Uint8Array(2 * NODE_BYTES);
  let { hash, sum } = leaf;
  for (const { side, ...sibling } of path) {
    const node = { hash, sum };
    writeNode(nodes, 0, side === "left" ? sibling : node);
    writeNode(nodes, 1, side === "left" ? node : sibling);
    [hash, sum] = [hashOfChildren(nodes, 0), sum + sibling.sum];
  }
  if (!isSum(sum)) throw new RangeError("a sum has no more than 16 bytes");
  return { hash, sum };
}

/** Collects the leaves of a tree, in any order, and builds it. Each takes 48 bytes. */
export function createSumTree() {
  // In parts: an array that grows would be copied in one go.
  const parts: Uint8Array[] = [];
  let leaves = 0;
  return {
    /** @throws where the amount is not one that a ledger has */
    add({ hash, sum }: SumNode): void {
      if (sum > AMOUNT_MAX) throw new RangeError("a leaf has an amount");
      const at = leaves % PART;
      if (at === 0) parts.push(new Uint8Array(PART * NODE_BYTES));
      writeNode(parts.at(-1) as Uint8Array, at, { hash, sum });
      leaves += 1;
    },
    /**
     * Builds the tree. The leaves are in the order of their hashes, which says nothing of whose they are. It pauses, by `yield`, after
     * a few milliseconds of work each time.
     *
     * @param of the hash of the leaf whose way up is asked for
     */
    *build(of: Hash | null = null): Generator<undefined, BuiltTree> {
      if (leaves === 0) return { root: { hash: EMPTY_ROOT, sum: 0n }, leaves, path: null };
      const ordered = yield* inOrder(parts, leaves);
      const found = of === null ? -1 : yield* placeOf(ordered, leaves, of);
      const path = yield* raise(ordered, leaves, found);
      return { root: readNode(ordered, 0), leaves, path: found === -1 ? null : path };
    },
  };
}

export type SumTree = ReturnType<typeof createSumTree>;

function writeNode(nodes: Uint8Array, index: number, { hash, sum }: SumNode): void {
  if (hash.length !== HASH_BYTES || !isSum(sum)) throw new RangeError("a node has a hash and a sum");
  nodes.set(hash, index * NODE_BYTES);
  const view = viewOf(nodes);
  const at = index * NODE_BYTES + HASH_BYTES;
  view.setBigUint64(at, sum >> 64n);
  view.setBigUint64(at + 8, BigInt.asUintN(64, sum));
}

function readNode(nodes: Uint8Array, index: number): SumNode {
  const [from, view] = [index * NODE_BYTES, viewOf(nodes)];
  const at = from + HASH_BYTES;
  return {
    hash: nodes.slice(from, at),
    sum: (view.getBigUint64(at) << 64n) | view.getBigUint64(at + 8),
  };
}

const viewOf = ({ buffer, byteOffset, byteLength }: Uint8Array): DataView =>
  new DataView(buffer, byteOffset, byteLength);

/** The hash of the node whose children are at an index and after it. */
function hashOfChildren(nodes: Uint8Array, index: number): Hash {
  const input = new Uint8Array(1 + 2 * NODE_BYTES);
  input[0] = NODE_PREFIX;
  input.set(nodes.subarray(index * NODE_BYTES, (index + 2) * NODE_BYTES), 1);
  return Bun.SHA256.hash(input) as Uint8Array;
}

/** The nodes in the order of their hashes: first by the first two bytes, of which each then has few. */
function* inOrder(parts: readonly Uint8Array[], count: number): Generator<undefined, Uint8Array> {
  const nodeAt = (index: number): Uint8Array => {
    const at = (index % PART) * NODE_BYTES;
    return (parts[Math.floor(index / PART)] as Uint8Array).subarray(at, at + NODE_BYTES);
  };
  const bucketOf = (node: Uint8Array): number => ((node[0] as number) << 8) | (node[1] as number);
  const ends = new Uint32Array(BUCKETS);
  for (let index = 0; index < count; index++) {
    const bucket = bucketOf(nodeAt(index));
    ends[bucket] = (ends[bucket] as number) + 1;
    if (index % (8 * STEP) === 0) yield;
  }
  for (let bucket = 1; bucket < BUCKETS; bucket++)
    ends[bucket] = (ends[bucket] as number) + (ends[bucket - 1] as number);
  const starts = new Uint32Array(BUCKETS);
  starts.set(ends.subarray(0, -1), 1);
  const ordered = new Uint8Array(count * NODE_BYTES);
  const next = starts.slice();
  for (let index = 0; index < count; index++) {
    const node = nodeAt(index);
    const bucket = bucketOf(node);
    const place = next[bucket] as number;
    next[bucket] = place + 1;
    ordered.set(node, place * NODE_BYTES);
    if (index % (8 * STEP) === 0) yield;
  }
  for (let bucket = 0; bucket < BUCKETS; bucket++) {
    const [start, end] = [starts[bucket] as number, ends[bucket] as number];
    if (end - start > 1) sortWithin(ordered, start, end);
    // As often as so many nodes have been passed.
    if (Math.floor(start / STEP) !== Math.floor(end / STEP)) yield;
  }
  return ordered;
}

function sortWithin(nodes: Uint8Array, start: number, end: number): void {
  const sorted = Array.from({ length: end - start }, (_, at) =>
    nodes.slice((start + at) * NODE_BYTES, (start + at + 1) * NODE_BYTES),
  ).sort(Buffer.compare);
  for (const [at, node] of sorted.entries()) nodes.set(node, (start + at) * NODE_BYTES);
}

function* placeOf(nodes: Uint8Array, count: number, hash: Hash): Generator<undefined, number> {
  for (let index = 0; index < count; index++) {
    const at = index * NODE_BYTES;
    if (nodes[at] === hash[0] && Buffer.compare(nodes.subarray(at, at + HASH_BYTES), hash) === 0)
      return index;
    if (index % (64 * STEP) === 0) yield;
  }
  return -1;
}

/** Replaces the nodes by those above them, level by level, up to the root. Gives the siblings on the way up from an index. */
function* raise(nodes: Uint8Array, count: number, from: number): Generator<undefined, readonly Sibling[]> {
  const path: Sibling[] = [];
  const view = viewOf(nodes);
  let index = from;
  for (let size = count; size > 1; size = Math.ceil(size / 2)) {
    const sibling = index ^ 1;
    if (index !== -1 && sibling < size)
      path.push({ side: sibling < index ? "left" : "right", ...readNode(nodes, sibling) });
    for (let left = 0; left + 1 < size; left += 2) {
      raisePair(nodes, view, left);
      if (left % (2 * STEP) === 0) yield;
    }
    // Without a sibling it moves up as it is.
    if (size % 2 === 1)
      nodes.copyWithin(((size - 1) / 2) * NODE_BYTES, (size - 1) * NODE_BYTES, size * NODE_BYTES);
    if (index !== -1) index = Math.floor(index / 2);
  }
  return path;
}

/** Writes the node of a pair where the first of it and the nodes before it were. */
function raisePair(nodes: Uint8Array, view: DataView, left: number): void {
  const hash = hashOfChildren(nodes, left);
  const [one, other] = [left * NODE_BYTES + HASH_BYTES, (left + 1) * NODE_BYTES + HASH_BYTES];
  const to = (left / 2) * NODE_BYTES;
  let carry = 0;
  // Four bytes at a time, the last ones first: as bigints these sums would take longer than the hashes.
  const sum: number[] = [];
  for (let at = SUM_BYTES - 4; at >= 0; at -= 4) {
    const part = view.getUint32(one + at) + view.getUint32(other + at) + carry;
    sum.push(part);
    carry = part > 0xffff_ffff ? 1 : 0;
  }
  if (carry !== 0) throw new RangeError("a sum has no more than 16 bytes");
  nodes.set(hash, to);
  for (const [index, part] of sum.entries()) view.setUint32(to + NODE_BYTES - 4 * (index + 1), part >>> 0);
}
