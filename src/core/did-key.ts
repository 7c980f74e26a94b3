import { base58btc } from "multiformats/bases/base58";

/** `did:key`: an identifier that is itself a public key (W3C CCG, The did:key Method). */

const PREFIX = "did:key:";
/**
 * All accepted keys are shorter. Decoding takes quadratic time, so a long text is refused before it is
 * decoded.
 */
const ENCODED_LENGTH_MAX = 64;

/** A multicodec prefix (an unsigned varint of the code), then the key's bytes. */
type KeyType = {
  readonly prefix: readonly [number, number];
  readonly keyBytes: number;
  readonly isPoint: boolean;
};

const KEY_TYPES: readonly KeyType[] = [
  // ed25519-pub, 0xed
  { prefix: [0xed, 0x01], keyBytes: 32, isPoint: false },
  // secp256k1-pub, 0xe7
  { prefix: [0xe7, 0x01], keyBytes: 33, isPoint: true },
  // p256-pub, 0x1200
  { prefix: [0x80, 0x24], keyBytes: 33, isPoint: true },
];

/** Whether a text is the `did:key` of an Ed25519, secp256k1 or P-256 public key, in base58btc. */
export function isDidKey(text: string): boolean {
  if (!text.startsWith(PREFIX)) return false;
  const bytes = decode(text.slice(PREFIX.length));
  if (!bytes) return false;
  const type = KEY_TYPES.find(({ prefix }) => prefix.every((byte, index) => bytes[index] === byte));
  if (!type || bytes.length !== type.prefix.length + type.keyBytes) return false;
  // A point of a curve is written in compressed form: its first byte says which of two points it is.
  const first = bytes[type.prefix.length];
  return !type.isPoint || first === 2 || first === 3;
}

/** The `did:key` that an agent's identity is; null for a `did:web`. */
export const didKeyOf = (identity: string): string | null => (identity.startsWith(PREFIX) ? identity : null);

/** A key's bytes and type as `publicKeyMultibase` has them: in a `did:key` they stand after the prefix. */
export const multibaseOf = (didKey: string): string => didKey.slice(PREFIX.length);

/** The bytes that `z` and base58btc digits stand for; null for any other text. */
function decode(encoded: string): Uint8Array | null {
  if (encoded.length > ENCODED_LENGTH_MAX || !encoded.startsWith(base58btc.prefix)) return null;
  try {
    const bytes = base58btc.decode(encoded);
    // The decoder also accepts some characters that are not ASCII as digits.
    return base58btc.encode(bytes) === encoded ? bytes : null;
  } catch {
    return null;
  }
}
