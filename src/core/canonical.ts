import canonicalize from "canonicalize";

/** RFC 8785 text of a JSON value. Throws on what JSON cannot say: a lone surrogate, NaN, a cycle. */
export function canonicalJson(value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError("not a JSON value");
  return text;
}

/** Lower-case hex SHA-256 of bytes, or of a string's UTF-8. */
export const sha256 = (data: string | Uint8Array): string => Bun.SHA256.hash(data, "hex");

/** SHA-256 of a JSON value's RFC 8785 form (decisions.md, Warrants: `spec_hash`, `rules_hash`, …). */
export const hashJson = (value: unknown): string => sha256(canonicalJson(value));
