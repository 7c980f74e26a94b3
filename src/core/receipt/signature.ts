import { canonicalJson } from "../canonical.ts";
import { parseJsonText } from "../json-text.ts";
import { isRecord } from "../shapes.ts";
import { fromBase64, hexOf, type Sha256, type Verify } from "../signed-note.ts";
import { same, shown } from "./say.ts";

/** The `typ` of a receipt's signature, so that a token of another type does not pass for one. */
export const RECEIPT_TYPE = "holdfast-receipt+jws";

/** A key of a JWKS that signs receipts. */
export type ReceiptKey = { readonly kid: string; readonly publicKey: Uint8Array };

/**
 * The keys of a JWKS (RFC 7517), as `/.well-known/jwks.json` has them, or the problem with it. A `kid` is its key's thumbprint
 * (RFC 7638): else another key could come under the `kid` that a reader knows.
 */
export function keysOfJwks(jwks: unknown, sha256: Sha256): readonly ReceiptKey[] | string {
  if (!isRecord(jwks) || !Array.isArray(jwks.keys)) return "the keys are not a JWKS";
  const keys = jwks.keys.map((jwk) => keyOf(jwk, sha256));
  const readable = keys.filter((key) => key !== null);
  return readable.length === keys.length && keys.length > 0
    ? readable
    : "the JWKS has a key that is not an Ed25519 key of a signature, or whose kid is not its thumbprint, or none";
}

function keyOf(jwk: unknown, sha256: Sha256): ReceiptKey | null {
  if (!isRecord(jwk)) return null;
  const { kty, crv, x, kid, alg, use } = jwk;
  const isEdDsa = kty === "OKP" && crv === "Ed25519" && alg === "EdDSA" && use === "sig";
  if (!isEdDsa || typeof kid !== "string" || typeof x !== "string") return null;
  const publicKey = fromBase64Url(x);
  if (publicKey?.length !== 32) return null;
  const thumbprint = hexOf(sha256(new TextEncoder().encode(canonicalJson({ crv, kty, x }))));
  const named = fromBase64Url(kid);
  return named && hexOf(named) === thumbprint ? { kid, publicKey } : null;
}

type Signed = {
  /** What is said to be signed: of a receipt all but its signature. */
  readonly rest: Readonly<Record<string, unknown>>;
  readonly signature: string;
  /** Its `typ`. */
  readonly type: string;
  /** Null where no keys are known. */
  readonly keys: readonly ReceiptKey[] | null;
};

/** What is wrong with the signature, and the id of the key that it names; null where it names none. */
export async function checkSignature(
  { rest, signature, type, keys }: Signed,
  verify: Verify,
): Promise<{ readonly kid: string | null; readonly problems: readonly string[] }> {
  const [head = "", body = "", end = "", ...more] = signature.split(".");
  const [headBytes, bodyBytes, bytes] = [head, body, end].map(fromBase64Url);
  if (more.length > 0 || !headBytes || !bodyBytes || bytes?.length !== 64)
    return { kid: null, problems: ["the signature is not a compact JWS"] };
  const header = parseJsonText(new TextDecoder().decode(headBytes));
  const kid = kidOf("value" in header ? header.value : null, type);
  if (kid === null) return { kid, problems: [`the signature's header is not that of a ${type} by EdDSA`] };
  const problems = [...problemsOfPayload(rest, bodyBytes)];
  const key = keys?.find((one) => one.kid === kid);
  if (keys && !key) problems.push(`the signature is by the key ${shown(kid)}, which is not among the keys`);
  if (key && !(await verify(key.publicKey, new TextEncoder().encode(`${head}.${body}`), bytes)))
    problems.push(`the signature is not one of the key ${shown(kid)}`);
  return { kid, problems };
}

/** A header has these three fields and no other: one that must be understood (`crit`) is not. */
function kidOf(header: unknown, type: string): string | null {
  if (!isRecord(header) || Object.keys(header).length !== 3) return null;
  const { alg, kid, typ } = header;
  return alg === "EdDSA" && typ === type && typeof kid === "string" ? kid : null;
}

const DIFFERENCES_MAX = 5;

/** Where the receipt differs from what was signed. */
function problemsOfPayload(rest: unknown, payload: Uint8Array): readonly string[] {
  const signedText = new TextDecoder("utf-8", { ignoreBOM: true }).decode(payload);
  if (signedText === canonicalJson(rest)) return [];
  const signed = parseJsonText(signedText);
  if ("problem" in signed) return [`what was signed ${signed.problem}`];
  const found = [...differences(rest, signed.value, "")].slice(0, DIFFERENCES_MAX);
  return found.length > 0 ? found : ["what was signed is not in its canonical form"];
}

function* differences(now: unknown, then: unknown, path: string): Generator<string> {
  if (same(now, then)) return;
  const isTree = (value: unknown): value is object => typeof value === "object" && value !== null;
  if (!isTree(now) || !isTree(then) || Array.isArray(now) !== Array.isArray(then)) {
    yield `${path || "the receipt"} is ${shown(now)}, but what was signed says ${shown(then)}`;
    return;
  }
  const [mine, signed] = [new Map(Object.entries(now)), new Map(Object.entries(then))];
  for (const name of new Set([...mine.keys(), ...signed.keys()])) {
    const step = Array.isArray(now) ? `[${name}]` : path === "" ? name : `.${name}`;
    yield* differences(mine.get(name), signed.get(name), `${path}${step}`);
  }
}

/** The bytes of base64url without padding, as only one text encodes them; null for every other text. */
function fromBase64Url(text: string): Uint8Array | null {
  if (!/^[A-Za-z0-9_-]*$/.test(text)) return null;
  const plain = text.replaceAll("-", "+").replaceAll("_", "/");
  return fromBase64(plain.padEnd(Math.ceil(plain.length / 4) * 4, "="));
}
