import type { SeenAnswer } from "../core/capsule.ts";
import {
  hasDigest,
  type SignedMessage,
  type StatedSignature,
  statedSignatures,
} from "../core/http-signature.ts";
import { algorithmOf, type PublicJwk } from "../core/source-key.ts";

/** The digests that a `Content-Digest` may have here (RFC 9530, 5): their names there and in WebCrypto. */
const DIGESTS = { "sha-256": "SHA-256", "sha-512": "SHA-512" } as const;

/**
 * Whether a response that is signed has the digest of its bytes as they were sent, before any content coding is undone
 * (RFC 9530, 2). False where it is not signed, since nobody then asks.
 */
export async function holdsItsDigest(headers: SeenAnswer["headers"], wire: Uint8Array): Promise<boolean> {
  const lines = (headers ?? []).flatMap(([name, value]) => (name === "content-digest" ? [value] : []));
  const isSigned = headers?.some(([name]) => name === "signature-input");
  if (lines.length === 0 || !isSigned) return false;
  const stated = lines.join(", ");
  const digests: Record<string, Uint8Array> = {};
  for (const [name, algorithm] of Object.entries(DIGESTS)) {
    // Only what the header names is computed.
    if (stated.includes(name))
      digests[name] = new Uint8Array(await crypto.subtle.digest(algorithm, wire as Uint8Array<ArrayBuffer>));
  }
  return hasDigest(stated, digests);
}

export type SourceSignatureQuestion = {
  readonly answer: SeenAnswer;
  readonly method: string;
  readonly keys: readonly PublicJwk[];
  /** When the answer came, epoch milliseconds. */
  readonly now: number;
};

/** The key that has signed the status and the bytes of an answer; null where none has. It never rejects. */
export async function signerAmong({
  answer,
  method,
  keys,
  now,
}: SourceSignatureQuestion): Promise<PublicJwk | null> {
  const last = answer.hops.at(-1);
  if (!last || !answer.headers || !answer.holdsItsDigest) return null;
  const message: SignedMessage = {
    status: last.status,
    headers: answer.headers,
    request: { method, url: last.url },
  };
  for (const stated of statedSignatures(message, now)) {
    for (const key of keys) if (await hasSigned(key, stated)) return key;
  }
  return null;
}

async function hasSigned(jwk: PublicJwk, { base, signature, algorithm }: StatedSignature): Promise<boolean> {
  if (algorithm !== null && algorithm !== algorithmOf(jwk)) return false;
  const how =
    jwk.crv === "Ed25519" ? { name: "Ed25519" } : { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  try {
    const key = await crypto.subtle.importKey("jwk", { ...jwk }, how, false, ["verify"]);
    return await crypto.subtle.verify(how, key, signature as Uint8Array<ArrayBuffer>, Buffer.from(base));
  } catch {
    // Not every point is on the curve.
    return false;
  }
}
