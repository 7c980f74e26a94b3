import canonicalize from "canonicalize";

/** RFC 8785 text of a JSON value. Throws on what JSON cannot say: a lone surrogate, NaN, a cycle. */
export function canonicalJson(value: unknown): string {
  const ordered = inOrder(value, DEPTH_MAX);
  const text = ordered === undefined ? canonicalize(value) : JSON.stringify(ordered);
  if (text === undefined) throw new TypeError("not a JSON value");
  return text;
}

const DEPTH_MAX = 64;

/**
 * The value with the keys of its objects in RFC 8785's order. The runtime writes that as the canonical text, several times as
 * fast as the package, whose work is left to what is unusual: undefined is for that. It is a key like `10`, which objects put
 * first by themselves, or `__proto__`; a lone surrogate; and whatever is not plain JSON.
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
  for (const key of Object.keys(value).sort()) {
    const item = inOrder((value as Record<string, unknown>)[key], depth - 1);
    if (item === undefined || !USUAL_KEY.test(key)) return undefined;
    ordered[key] = item;
  }
  return ordered;
}

const USUAL_KEY = /^[A-Za-z][A-Za-z0-9_.-]*$/;

/** Lower-case hex SHA-256 of bytes, or of a string's UTF-8. */
export const sha256 = (data: string | Uint8Array): string => Bun.SHA256.hash(data, "hex");

/** SHA-256 of a JSON value's RFC 8785 form (decisions.md, Warrants: `spec_hash`, `rules_hash`, …). */
export const hashJson = (value: unknown): string => sha256(canonicalJson(value));
