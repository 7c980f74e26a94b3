import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign } from "node:crypto";
import { CompactSign } from "jose";

/**
 * Signs what others verify without asking Holdfast: so far only vouchers (docs/x402,
 * "Accepting Holdfast vouchers").
 */
export type Tokens = {
  /**
   * A compact JWS of a text (EdDSA, `kid` in its header).
   *
   * @param type the header's `typ`, so that a token of one type does not pass for another
   */
  sign(payload: string, type: string): Promise<string>;
  /** The 64 bytes of an Ed25519 signature over any bytes, by the first of the public keys: the checkpoints of the log are signed so. */
  signBytes(message: Uint8Array): Uint8Array;
  /** The public keys, as `/.well-known/jwks.json` shows them. */
  readonly jwks: { readonly keys: readonly PublicKey[] };
};

export type PublicKey = {
  readonly kty: "OKP";
  readonly crv: "Ed25519";
  readonly x: string;
  /** The key's RFC 7638 thumbprint. */
  readonly kid: string;
  readonly alg: typeof ALGORITHM;
  readonly use: "sig";
};

const ALGORITHM = "EdDSA";
const PEM_BLOCK = /-----BEGIN ([A-Z ]+)-----[A-Za-z0-9+/=\s]+-----END \1-----/g;

/** A new signing key: PKCS8 in PEM, as `openssl genpkey -algorithm ed25519` makes it. */
export const newSigningKey = (): string =>
  generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString().trim();

/**
 * Signs with the first key of a PEM text. The keys after it were replaced: they sign nothing more, but stay
 * in the JWKS, so that their earlier signatures can still be verified. Their public keys are enough. Throws
 * unless all are Ed25519 keys and the first is private.
 */
export function createTokens(pem: string): Tokens {
  const { signingKey, current, rotated } = readKeys(pem);
  // Each `kid` is listed once: a reader that finds two keys with one `kid` accepts neither.
  const keys = new Map([current, ...rotated].map((key) => [key.kid, key]));
  return {
    jwks: { keys: [...keys.values()] },
    sign: (payload, type) =>
      new CompactSign(new TextEncoder().encode(payload))
        .setProtectedHeader({ alg: ALGORITHM, kid: current.kid, typ: type })
        .sign(signingKey),
    signBytes: (message) => new Uint8Array(sign(null, message, signingKey)),
  };
}

function readKeys(pem: string) {
  const blocks = pem.match(PEM_BLOCK) ?? [];
  try {
    const [current, ...rotated] = blocks.map(publicKeyOf);
    if (blocks[0] && current) return { signingKey: createPrivateKey(blocks[0]), current, rotated };
  } catch {
    // The cause is not passed on: its message may hold a part of the key.
  }
  throw new Error("the signing key must be Ed25519 keys in PEM, a private one first");
}

/** The public key of a PEM block; of a private key, its public half. */
function publicKeyOf(pem: string): PublicKey {
  const { kty, crv, x } = createPublicKey(pem).export({ format: "jwk" });
  if (kty !== "OKP" || crv !== "Ed25519" || x === undefined) throw new Error("not an Ed25519 key");
  const kid = createHash("sha256").update(JSON.stringify({ crv, kty, x })).digest("base64url");
  return { kty, crv, x, kid, alg: ALGORITHM, use: "sig" };
}
