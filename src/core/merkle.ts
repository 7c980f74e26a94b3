/**
 * The Merkle tree of RFC 6962, section 2.1: its hashes, its proofs and how they are verified. A tree is never held here: what
 * is computed asks for the hash of a complete subtree, about as often as the tree has levels.
 */

/** 32 bytes of SHA-256. */
export type Hash = Uint8Array;

/**
 * The hash of the complete subtree over the leaves from `index * 2 ** level` up to `(index + 1) * 2 ** level`. At level 0 it
 * is a leaf's hash.
 */
export type NodeReader = (level: number, index: number) => Hash;

export const HASH_BYTES = 32;

/** Leaves and nodes are hashed with different first bytes, so that no node can be shown as a leaf. */
const LEAF_PREFIX = 0;
const NODE_PREFIX = 1;

/** The root of a tree without leaves. */
export const EMPTY_ROOT: Hash = Uint8Array.from(
  atob("47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
  (character) => character.charCodeAt(0),
);

/** SHA-256 of Bun. A browser, which verifies receipts, gives its own. */
const sha256 = (bytes: Uint8Array): Hash => Bun.SHA256.hash(bytes) as Uint8Array;

/** The hash of a leaf with this data. */
export function leafHash(data: Uint8Array, hash = sha256): Hash {
  const input = new Uint8Array(1 + data.length);
  input[0] = LEAF_PREFIX;
  input.set(data, 1);
  return hash(input);
}

/** The hash of a node with these two below it. */
export function nodeHash(left: Hash, right: Hash, hash = sha256): Hash {
  const input = new Uint8Array(1 + 2 * HASH_BYTES);
  input[0] = NODE_PREFIX;
  input.set(left, 1);
  input.set(right, 1 + HASH_BYTES);
  return hash(input);
}

/** The root of the tree of the first `size` leaves. */
export const rootOf = (size: number, read: NodeReader): Hash =>
  size === 0 ? EMPTY_ROOT : hashOf({ start: 0, end: size }, read);

/**
 * That the leaf at `index` is in the tree of the first `size` leaves: the hashes that `verifyInclusion` needs, the lowest
 * first.
 *
 * @throws where the tree does not have that leaf
 */
export function inclusionProof({ index, size }: { index: number; size: number }, read: NodeReader): Hash[] {
  if (index < 0 || index >= size) throw new RangeError(`a tree of ${size} leaves has no leaf ${index}`);
  const proof: Hash[] = [];
  let { start, end }: Range = { start: 0, end: size };
  while (end - start > 1) {
    const middle = start + splitOf(end - start);
    const isLeft = index < middle;
    proof.push(hashOf(isLeft ? { start: middle, end } : { start, end: middle }, read));
    if (isLeft) end = middle;
    else start = middle;
  }
  return proof.reverse();
}

/**
 * That the first `from` leaves of the tree of `to` leaves are the tree of `from` leaves: the hashes that `verifyConsistency`
 * needs. None where the smaller tree is empty, or as large as the other.
 *
 * @throws where `from` is larger
 */
export function consistencyProof({ from, to }: { from: number; to: number }, read: NodeReader): Hash[] {
  if (from < 0 || from > to) throw new RangeError(`a tree of ${to} leaves did not have ${from} before`);
  if (from === 0) return [];
  const proof: Hash[] = [];
  let { start, end }: Range = { start: 0, end: to };
  while (from < end) {
    const middle = start + splitOf(end - start);
    if (from <= middle) {
      proof.push(hashOf({ start: middle, end }, read));
      end = middle;
    } else {
      proof.push(hashOf({ start, end: middle }, read));
      start = middle;
    }
  }
  // What remains ends the smaller tree. Where it is the whole of it, the verifier has its hash already.
  if (start > 0) proof.push(hashOf({ start, end }, read));
  return proof.reverse();
}

/**
 * The right edge of a tree that grows from nothing: its complete subtrees, of which there is one of each size at most. With them a
 * root costs as many hashes as the tree has levels.
 */
export function growingEdge() {
  /** By level. Those of the present size are where it has a bit that is set. */
  const subtrees: Hash[] = [];
  /** By level: the subtrees that the last leaf completed, from the leaf itself to the largest. */
  const completed: Hash[] = [];
  let size = 0;
  const has = (level: number): boolean => Math.floor(size / 2 ** level) % 2 === 1;
  return {
    append(leaf: Hash): void {
      let hash = leaf;
      let level = 0;
      for (; has(level); level++) {
        completed[level] = hash;
        hash = nodeHash(subtrees[level] as Hash, hash);
      }
      completed[level] = hash;
      subtrees[level] = hash;
      size += 1;
    },
    /** The subtree of a level that the last leaf completed. */
    completed: (level: number): Hash => completed[level] as Hash,
    root(): Hash {
      let root: Hash | null = null;
      for (let level = 0; 2 ** level <= size; level++) {
        if (!has(level)) continue;
        const subtree = subtrees[level] as Hash;
        root = root === null ? subtree : nodeHash(subtree, root);
      }
      return root ?? EMPTY_ROOT;
    },
  };
}

/** That a leaf is in a tree, as somebody claims. */
type Inclusion = {
  readonly index: number;
  readonly size: number;
  /** The leaf's hash. */
  readonly leaf: Hash;
  readonly proof: readonly Hash[];
  readonly root: Hash;
};

/** Whether a leaf's hash is at `index` in the tree of that size and root (RFC 9162, section 2.1.3.2). */
export function verifyInclusion({ index, size, leaf, proof, root }: Inclusion, hash = sha256): boolean {
  if (!isCount(index) || !isCount(size) || index >= size) return false;
  if (![leaf, root, ...proof].every(isHash)) return false;
  const edge = climbing(index, size - 1);
  let node = leaf;
  for (const sibling of proof) {
    const side = edge.next();
    if (side === null) return false;
    node = side === "left" ? nodeHash(sibling, node, hash) : nodeHash(node, sibling, hash);
  }
  return edge.isAtRoot() && sameHash(node, root);
}

/**
 * Whether the tree of `from` leaves is how the tree of `to` leaves began (RFC 9162, section 2.1.4.2). Everything begins with
 * the empty tree.
 */
export function verifyConsistency({
  from,
  to,
  fromRoot,
  toRoot,
  proof,
}: {
  readonly from: number;
  readonly to: number;
  readonly fromRoot: Hash;
  readonly toRoot: Hash;
  readonly proof: readonly Hash[];
}): boolean {
  if (!isCount(from) || !isCount(to) || from > to) return false;
  if (![fromRoot, toRoot, ...proof].every(isHash)) return false;
  if (from === to) return proof.length === 0 && sameHash(fromRoot, toRoot);
  if (from === 0) return proof.length === 0 && sameHash(fromRoot, EMPTY_ROOT);
  // The root of a smaller tree that is one complete subtree is the first hash itself, so the proof leaves it out.
  const [first, ...siblings] = isPowerOfTwo(from) ? [fromRoot, ...proof] : proof;
  if (!first) return false;
  const edge = climbing(from - 1, to - 1);
  edge.leaveRightEdge();
  let [older, newer] = [first, first];
  for (const sibling of siblings) {
    const side = edge.next();
    if (side === null) return false;
    if (side === "left") [older, newer] = [nodeHash(sibling, older), nodeHash(sibling, newer)];
    else newer = nodeHash(newer, sibling);
  }
  return edge.isAtRoot() && sameHash(older, fromRoot) && sameHash(newer, toRoot);
}

/** The leaves from `start` up to `end`. */
type Range = { readonly start: number; readonly end: number };

/** The hash over a range that begins where a complete subtree of at least its size may begin. */
function hashOf({ start, end }: Range, read: NodeReader): Hash {
  const size = end - start;
  if (isPowerOfTwo(size)) return read(Math.log2(size), start / size);
  const middle = start + splitOf(size);
  return nodeHash(hashOf({ start, end: middle }, read), hashOf({ start: middle, end }, read));
}

/** The largest power of two below a size of at least 2: how many leaves are on the left side. */
function splitOf(size: number): number {
  let split = 1;
  while (split * 2 < size) split *= 2;
  return split;
}

function isPowerOfTwo(size: number): boolean {
  let power = 1;
  while (power < size) power *= 2;
  return power === size;
}

/**
 * The way up from a node to the root, beside the way up from the last leaf. `next` says on which side the sibling is that
 * comes next, null where there is none. Bits are shifted by division, since trees may have more than 2 ** 31 leaves.
 */
function climbing(index: number, last: number) {
  let [node, edge] = [index, last];
  const up = () => {
    node = Math.floor(node / 2);
    edge = Math.floor(edge / 2);
  };
  return {
    /** To the top of the complete subtree whose last leaf the node is. */
    leaveRightEdge() {
      while (node % 2 === 1) up();
    },
    next(): "left" | "right" | null {
      if (edge === 0) return null;
      const side = node % 2 === 1 || node === edge ? "left" : "right";
      // A node at the right edge without a sibling there is the same node one level up.
      if (side === "left") while (node % 2 === 0) up();
      up();
      return side;
    },
    isAtRoot: () => edge === 0,
  };
}

const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0;
const isHash = (hash: Hash): boolean => hash.length === HASH_BYTES;
export const sameHash = (one: Hash, other: Hash): boolean => one.every((byte, at) => byte === other[at]);
