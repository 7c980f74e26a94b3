/**
 * Cryptographic random bytes, fetched from the system in blocks: one call for each id would cost more than
 * the id.
 */
const BLOCK = new Uint8Array(4_096);
let used = BLOCK.length;

export function randomByte(): number {
  if (used === BLOCK.length) {
    crypto.getRandomValues(BLOCK);
    used = 0;
  }
  const byte = BLOCK[used] ?? 0;
  // A used byte is erased.
  BLOCK[used++] = 0;
  return byte;
}

/** A uniform integer below 2^40, which a double holds exactly. */
export function random40(): number {
  let value = 0;
  for (let count = 0; count < 5; count++) value = value * 256 + randomByte();
  return value;
}
