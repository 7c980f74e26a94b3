import { canonicalJson, sha256 } from "./canonical.ts";
import { type Refusal, refuseField } from "./errors.ts";

/** Who signs the answers of a source, as an organisation has registered it for the source's origin. */
export type SourceKey = {
  readonly id: string;
  readonly organisationId: string;
  /** Such as `https://api.example`. */
  readonly origin: string;
  readonly signer: Signer;
  readonly createdAt: number;
  /** When it was removed; null while it counts. */
  readonly removedAt: number | null;
};

export type PublicJwk =
  | { readonly kty: "OKP"; readonly crv: "Ed25519"; readonly x: string }
  | { readonly kty: "EC"; readonly crv: "P-256"; readonly x: string; readonly y: string };

/**
 * Whom a certificate of Sigstore is for: the issuer that has signed them in, and their URI or e-mail address there, both
 * exactly as the certificate has them.
 */
export type SigstoreIdentity = { readonly issuer: string; readonly subject: string };

export type Signer = PublicJwk | SigstoreIdentity;

export const isSigstore = (signer: Signer): signer is SigstoreIdentity => "issuer" in signer;

/** How many keys an organisation may have, and how many of them for one origin: each is tried with each signature. */
export const SOURCE_KEYS_MAX = 200;
export const SOURCE_KEYS_OF_ORIGIN_MAX = 4;

/** The algorithm that a key signs with, by its name in RFC 9421, 6.2.2. */
export const algorithmOf = ({ crv }: PublicJwk): "ed25519" | "ecdsa-p256-sha256" =>
  crv === "Ed25519" ? "ed25519" : "ecdsa-p256-sha256";

/**
 * Who has signed, as a check names them: a key by its thumbprint (RFC 7638), SHA-256 in base64url of its members in the
 * order of their names; an identity by the same of its two members, after `sigstore:`. Receipts are public, and an
 * identity may be somebody's e-mail address.
 */
export function thumbprintOf(signer: Signer): string {
  if (isSigstore(signer)) {
    const { issuer, subject } = signer;
    return `sigstore:${digestOf({ issuer, subject })}`;
  }
  const { crv, kty, x } = signer;
  return digestOf(signer.kty === "EC" ? { crv, kty, x, y: signer.y } : { crv, kty, x });
}

const digestOf = (members: object): string =>
  Buffer.from(sha256(canonicalJson(members)), "hex").toString("base64url");

/** 32 bytes in base64url. */
const COORDINATE = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

/** The key in a JWK, without its other members. A private key is refused, so that nobody leaves one here. */
export function parsePublicJwk(path: string, given: unknown): PublicJwk | Refusal {
  const { kty, crv, x, y, d } = (given ?? {}) as Readonly<Record<string, unknown>>;
  if (d !== undefined)
    return refuseField(path, "is a private key; give the public one, without its member d");
  const isCoordinate = (value: unknown): value is string =>
    typeof value === "string" && COORDINATE.test(value);
  if (kty === "OKP" && crv === "Ed25519" && isCoordinate(x)) return { kty, crv, x };
  if (kty === "EC" && crv === "P-256" && isCoordinate(x) && isCoordinate(y)) return { kty, crv, x, y };
  return refuseField(path, "must be a JWK of an Ed25519 key (kty OKP) or a P-256 key (kty EC)");
}

/** Printable ASCII without spaces: what certificates have. */
const IDENTITY = /^[\x21-\x7e]{1,512}$/;

/** Whether an identity's subject is a URI; else it is an e-mail address. */
export const isUri = (subject: string): boolean => /^[a-z][a-z0-9+.-]*:/i.test(subject);

export function parseIdentity(issuer: unknown, subject: unknown): SigstoreIdentity | Refusal {
  const isText = (value: unknown): value is string => typeof value === "string" && IDENTITY.test(value);
  if (!isText(issuer) || !/^https?:\/\//.test(issuer))
    return refuseField("issuer", "must be the URL of an issuer, such as https://accounts.google.com");
  return isText(subject) && (isUri(subject) || subject.includes("@"))
    ? { issuer, subject }
    : refuseField("subject", "must be a URI or an e-mail address, exactly as the certificate has it");
}
