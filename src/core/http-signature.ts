import {
  type Dictionary,
  type InnerList,
  parseDictionary,
  serializeInnerList,
  serializeItem,
} from "structured-headers";
import { MINUTE_MS, SECOND_MS } from "./time.ts";

/**
 * The signatures of a response (HTTP Message Signatures, RFC 9421), as far as they say who answered what: those that cover
 * `@status` and `content-digest`. They may cover more: headers of the response as they are, and the derived components of its
 * request. A signature with anything else in it is passed over, as one that nobody can check here.
 */

export type SignedMessage = {
  readonly status: number;
  /** By lower-case names, in the order in which they came. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** The request that it answers. */
  readonly request: { readonly method: string; readonly url: string };
};

/** A signature to check: the text that was signed, and what is said of the algorithm (null where nothing). */
export type StatedSignature = {
  readonly base: string;
  readonly signature: Uint8Array;
  readonly algorithm: string | null;
};

/** How many signatures of a response are looked at. */
const SIGNATURES_MAX = 4;
const COMPONENTS_MAX = 32;
/** How far in the future a signature may be made, since clocks differ. */
const FUTURE_MAX_MS = 5 * MINUTE_MS;

/**
 * The signatures that a response states, each with its signature base (RFC 9421, 2.5). None where the headers cannot be read.
 *
 * @param now epoch milliseconds: a signature that has expired, or is not made yet, is left out
 */
export function statedSignatures(message: SignedMessage, now: number): readonly StatedSignature[] {
  const inputs = dictionaryIn(message, "signature-input");
  const signatures = dictionaryIn(message, "signature");
  if (!inputs || !signatures) return [];
  return [...inputs].slice(0, SIGNATURES_MAX).flatMap(([label, input]) => {
    const signature = signatures.get(label)?.[0];
    if (!isInnerList(input) || !(signature instanceof ArrayBuffer)) return [];
    const base = signatureBase(message, input);
    if (base === null || !isInTime(input, now)) return [];
    const algorithm = input[1].get("alg") ?? null;
    if (algorithm !== null && typeof algorithm !== "string") return [];
    return [{ base, signature: new Uint8Array(signature), algorithm }];
  });
}

/**
 * Whether a `Content-Digest` (RFC 9530) has the digests of some bytes: every one that is known here, and one at least.
 *
 * @param digests the bytes' digests by the names of the algorithms
 */
export function hasDigest(contentDigest: string, digests: Readonly<Record<string, Uint8Array>>): boolean {
  const stated = parsed(contentDigest);
  if (!stated) return false;
  const known = [...stated].filter(([algorithm]) => Object.hasOwn(digests, algorithm));
  const holds = ([algorithm, [value]]: (typeof known)[number]): boolean =>
    value instanceof ArrayBuffer && Buffer.from(digests[algorithm] ?? []).equals(Buffer.from(value));
  return known.length > 0 && known.every(holds);
}

function parsed(text: string): Dictionary | null {
  try {
    return parseDictionary(text);
  } catch {
    return null;
  }
}

function dictionaryIn(message: SignedMessage, name: string): Dictionary | null {
  const text = fieldOf(message, name);
  return text === null ? null : parsed(text);
}

const isInnerList = (member: unknown): member is InnerList =>
  Array.isArray(member) && Array.isArray(member[0]);

/** A field's value: its lines, without the blanks around them, with commas between (RFC 9421, 2.1). */
function fieldOf({ headers }: SignedMessage, name: string): string | null {
  const lines = headers.flatMap(([each, value]) => (each === name ? [value.trim()] : []));
  return lines.length === 0 ? null : lines.join(", ");
}

function isInTime([, params]: InnerList, now: number): boolean {
  const [created, expires] = [params.get("created"), params.get("expires")];
  if (created !== undefined && !(typeof created === "number" && created * SECOND_MS <= now + FUTURE_MAX_MS))
    return false;
  return expires === undefined || (typeof expires === "number" && expires * SECOND_MS >= now);
}

/** Null where a component is not known here or not there, one is named twice, or one that must be covered is not. */
function signatureBase(message: SignedMessage, input: InnerList): string | null {
  const [components] = input;
  if (components.length > COMPONENTS_MAX) return null;
  const lines = new Map<string, string>();
  for (const [name, params] of components) {
    if (typeof name !== "string") return null;
    const isOfRequest = params.size === 1 && params.get("req") === true;
    if (params.size > 0 && !isOfRequest) return null;
    const value = isOfRequest ? ofRequest(message, name) : ofResponse(message, name);
    const identifier = serializeItem([name, params]);
    if (value === null || lines.has(identifier)) return null;
    lines.set(identifier, value);
  }
  if (!lines.has('"@status"') || !lines.has('"content-digest"')) return null;
  // The digest is of the coded bytes. Whoever takes the coding away, or adds one, changes what they mean.
  if (fieldOf(message, "content-encoding") !== null && !lines.has('"content-encoding"')) return null;
  lines.set('"@signature-params"', serializeInnerList(input));
  return [...lines].map(([identifier, value]) => `${identifier}: ${value}`).join("\n");
}

const NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
/** What a line of a signature base may have. */
const VALUE = /^[\t\x20-\x7e]*$/;

function ofResponse(message: SignedMessage, name: string): string | null {
  if (name === "@status") return String(message.status);
  // Cookies have commas of their own, so their lines cannot be told apart once they are joined.
  if (!NAME.test(name) || name === "set-cookie") return null;
  const value = fieldOf(message, name);
  return value !== null && VALUE.test(value) ? value : null;
}

/** The derived components of the request (RFC 9421, 2.2). */
function ofRequest({ request }: SignedMessage, name: string): string | null {
  const url = URL.parse(request.url);
  if (url === null) return null;
  switch (name) {
    case "@method":
      return request.method;
    case "@target-uri":
      return `${url.origin}${url.pathname}${url.search}`;
    case "@authority":
      return url.host;
    case "@scheme":
      return url.protocol.slice(0, -1);
    case "@request-target":
      return `${url.pathname}${url.search}`;
    case "@path":
      return url.pathname;
    case "@query":
      return url.search === "" ? "?" : url.search;
    default:
      return null;
  }
}
