/** The private key of a wallet on EVM chains: `0x` and 64 hex digits, in lower case. */
export type PrivateKey = `0x${string}`;

/** The order of the curve secp256k1. A private key is above zero and below this number. */
const CURVE_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/** No message repeats the text. */
export function parsePrivateKey(text: string): PrivateKey | { readonly problem: string } {
  const digits = /^(?:0x)?([0-9a-fA-F]{64})$/.exec(text)?.[1]?.toLowerCase() ?? "0";
  const scalar = BigInt(`0x${digits}`);
  return scalar > 0n && scalar < CURVE_ORDER
    ? `0x${digits}`
    : { problem: "must be a wallet's private key: 32 bytes in hex" };
}
