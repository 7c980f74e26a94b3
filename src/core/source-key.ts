import { sha256 } from "./canonical.ts";
import { type Refusal, refuseField } from "./errors.ts";

/** A public key that a source signs its answers with, as an organisation has registered it for the source's origin. */
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

/** Who may have signed an answer, as it is registered. */
export type Signer = PublicJwk;

/** How many keys an organisation may have, and how many of them for one origin: each is tried with each signature. */
export const SOURCE_KEYS_MAX = 200;
export const SOURCE_KEYS_OF_ORIGIN_MAX = 4;

/** The algorithm that a key signs with, by its name in RFC 9421, 6.2.2. */
export const algorithmOf = ({ crv }: PublicJwk): "ed25519" | "ecdsa-p256-sha256" =>
  crv === "Ed25519" ? "ed25519" : "ecdsa-p256-sha256";

/** The key's thumbprint (RFC 7638): SHA-256 in base64url of its members in the order of their names. */
export function thumbprintOf(jwk: PublicJwk): string {
  const { crv, kty, x } = jwk;
  const members = jwk.kty === "EC" ? { crv, kty, x, y: jwk.y } : { crv, kty, x };
  return Buffer.from(sha256(JSON.stringify(members)), "hex").toString("base64url");
}

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
