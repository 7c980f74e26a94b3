import canonicalize from "canonicalize";

/** RFC 8785 text of a JSON value. Throws on what JSON cannot express: a lone surrogate, NaN, a cycle. */
export function canonicalJson(value: unknown): string {
  const ordered = inOrder(value, DEPTH_MAX);
  const text = ordered === undefined ? canonicalize(value) : JSON.stringify(ordered);
  if (text === undefined) throw new TypeError("not a JSON value");
  return text;
}

const DEPTH_MAX = 64;

/**
 * The value with the keys of its objects in the order of RFC 8785. JSON.stringify then writes the canonical
 * text, several times as fast as the package. Undefined for an unusual value, which only the package can
 * write: it has a key such as `10`, which JavaScript always puts first, or `__proto__`; a lone surrogate; too
 * many levels; or it is not plain JSON.
 */
function inOrder(value: unknown, depth: number): unknown {
  if (typeof value === "string") return value.isWellFormed() ? value : undefined;
  if (value === null || typeof value === "boolean" || Number.isFinite(value)) return value;
  if (typeof value !== "object" || depth === 0) return undefined;
  if (Array.isArray(value)) {
    const items = value.map((item) => inOrder(item, depth - 1));
    return items.includes(undefined) ? undefined : items;
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return undefined;
  const ordered: Record<string, unknown> = {};
  for (const key of keysInOrder(value)) {
    const item = inOrder((value as Record<string, unknown>)[key], depth - 1);
    if (item === undefined || !USUAL_KEY.test(key)) return undefined;
    ordered[key] = item;
  }
  return ordered;
}

/** The keys in the order of RFC 8785. Most objects have them so already, and looking is cheaper than sorting. */
function keysInOrder(value: object): readonly string[] {
  const keys = Object.keys(value);
  for (let at = 1; at < keys.length; at++)
    if ((keys[at - 1] as string) > (keys[at] as string)) return keys.sort();
  return keys;
}

const USUAL_KEY = /^[A-Za-z][A-Za-z0-9_.-]*$/;

/** Lower-case hex SHA-256 of bytes, or of a string's UTF-8. */
export const sha256 = (data: string | Uint8Array): string => Bun.SHA256.hash(data, "hex");

/** The 32 bytes of a SHA-256. */
export const sha256Bytes = (bytes: Uint8Array): Uint8Array => Bun.SHA256.hash(bytes) as Uint8Array;

/** SHA-256 of a JSON value's RFC 8785 form, as in `spec_hash` and `rules_hash` (docs/security, "Trace"). */
export const hashJson = (value: unknown): string => sha256(canonicalJson(value));
