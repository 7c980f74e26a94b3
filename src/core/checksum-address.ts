import { keccak_256 } from "@noble/hashes/sha3.js";

const ADDRESS = /^0x([0-9a-fA-F]{40})$/;

/** An address of EVM chains in lower case; null for other text, and where its capitals are not its checksum (ERC-55). */
export function parseChecksumAddress(text: string): string | null {
  const digits = ADDRESS.exec(text)?.[1];
  return digits !== undefined && isWellWritten(digits) ? `0x${digits.toLowerCase()}` : null;
}

/** Capitals are a checksum of the address. An address in one case has none. */
function isWellWritten(digits: string): boolean {
  const lower = digits.toLowerCase();
  if (digits === lower || digits === digits.toUpperCase()) return true;
  const hash = keccak_256(new TextEncoder().encode(lower)).toHex();
  return [...lower].every(
    (digit, at) => digits[at] === (Number.parseInt(hash[at] ?? "", 16) >= 8 ? digit.toUpperCase() : digit),
  );
}
