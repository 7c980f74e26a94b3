/**
 * SHA-256 (FIPS 180-4), for the page of a receipt: WebCrypto's answers only later, and trees and chains of hashes are computed at
 * once. A test compares it with Bun's.
 */

const BLOCK_BYTES = 64;
const WORDS = 64;

const fractionOf = (root: number): number => Math.floor((root - Math.floor(root)) * 2 ** 32);

/** The first prime numbers. */
function primes(count: number): readonly number[] {
  const found: number[] = [];
  for (let candidate = 2; found.length < count; candidate++)
    if (found.every((prime) => candidate % prime !== 0)) found.push(candidate);
  return found;
}

const PRIMES = primes(WORDS);
const START = PRIMES.slice(0, 8).map((prime) => fractionOf(Math.sqrt(prime)));
const CONSTANTS = PRIMES.map((prime) => fractionOf(Math.cbrt(prime)));

const turned = (word: number, bits: number): number => (word >>> bits) | (word << (32 - bits));
const at = (words: ArrayLike<number>, index: number): number => words[index] ?? 0;

export function sha256(bytes: Uint8Array): Uint8Array {
  const padded = new Uint8Array(Math.ceil((bytes.length + 9) / BLOCK_BYTES) * BLOCK_BYTES);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(bytes.length) * 8n);
  const state = Uint32Array.from(START);
  for (let block = 0; block < padded.length; block += BLOCK_BYTES) addBlock(state, view, block);
  const hash = new DataView(new ArrayBuffer(32));
  state.forEach((word, index) => {
    hash.setUint32(4 * index, word);
  });
  return new Uint8Array(hash.buffer);
}

function addBlock(state: Uint32Array, view: DataView, block: number): void {
  const words = new Uint32Array(WORDS);
  for (let index = 0; index < WORDS; index++) {
    if (index < 16) {
      words[index] = view.getUint32(block + 4 * index);
      continue;
    }
    const [early, late] = [at(words, index - 15), at(words, index - 2)];
    const low = turned(early, 7) ^ turned(early, 18) ^ (early >>> 3);
    const high = turned(late, 17) ^ turned(late, 19) ^ (late >>> 10);
    words[index] = at(words, index - 16) + low + at(words, index - 7) + high;
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state;
  for (let index = 0; index < WORDS; index++) {
    const mixed = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25);
    const chosen = (e & f) ^ (~e & g);
    const first = (h + mixed + chosen + at(CONSTANTS, index) + at(words, index)) | 0;
    const second = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    [a, b, c, d, e, f, g, h] = [(first + second) | 0, a, b, c, (d + first) | 0, e, f, g];
  }
  [a, b, c, d, e, f, g, h].forEach((word, index) => {
    state[index] = at(state, index) + word;
  });
}
