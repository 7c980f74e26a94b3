/** What the programs of the page on receipts begin with (src/docs/receipts.md): hashes, the canonical form of JSON (RFC 8785), signatures. */
export const utf8 = (text) => new TextEncoder().encode(text);
export const join = (...parts) => Uint8Array.from(parts.flatMap((part) => [...part]));
export const sha256 = async (...parts) =>
  new Uint8Array(await crypto.subtle.digest("SHA-256", join(...parts)));
export const hashOf = async (value) => (await sha256(utf8(canonical(value)))).toHex();

export function must(holds, what) {
  if (!holds) throw new Error(what);
}

export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const member = (key) => `${canonical(key)}:${canonical(value[key])}`;
    return `{${Object.keys(value).sort().map(member).join(",")}}`;
  }
  must(typeof value !== "number" || Math.abs(value) < 2 ** 53, "a number out of range");
  must(typeof value !== "string" || value.isWellFormed(), "a lone surrogate");
  return JSON.stringify(value);
}

export const mustBeSame = (one, other, what) => must(canonical(one) === canonical(other), what);

export function unpadded(text) {
  const bytes = Uint8Array.fromBase64(text, { alphabet: "base64url" });
  must(bytes.toBase64({ alphabet: "base64url", omitPadding: true }) === text, "not base64url");
  return bytes;
}

export async function mustBeSigned(key, message, signature, what) {
  const imported = await crypto.subtle.importKey("raw", key, "Ed25519", false, ["verify"]);
  must(await crypto.subtle.verify("Ed25519", imported, signature, message), what);
}
