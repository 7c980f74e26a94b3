import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import { appendFileSync, closeSync, openSync, readSync, statSync, truncateSync } from "node:fs";

/**
 * The last line of a backup says who made it: `holdfast backup 2 sha256 <digest> hmac-sha256 <key's id> <code>`. The digest is of
 * every byte before the line, so that damage anywhere in the file is found, also where no audit looks. The code is an HMAC of the
 * line up to the code, so nobody without the key can change the digest. The first form had the digest alone: it found damage,
 * and anybody could write it.
 */
const FORM = 2;
const FORM_WITHOUT_CODE = 1;
const LINE = /\nholdfast backup ([1-9]\d{0,8}) ([ -~]{0,500})\n/g;
const DIGEST = /^[0-9a-f]{64}$/;
const DIGEST_AND_CODE = /^sha256 ([0-9a-f]{64}) hmac-sha256 ([0-9a-f]{16}) ([0-9a-f]{64})$/;
/** Where the line is looked for, so that what was added after it is named. */
const TAIL_BYTES = 64 * 1024;

const CHUNK_BYTES = 1024 * 1024;

/** A part of its own for each use of the key, so that the id, which everybody reads, says nothing about the rest. */
const derived = (key: Uint8Array, use: string, bytes: number): Buffer =>
  Buffer.from(hkdfSync("sha256", key, "", `holdfast backup ${use}`, bytes));

/** What a key is called: 16 hex digits. It is no secret. */
export const keyIdOf = (key: Uint8Array): string => derived(key, "key id", 8).toString("hex");

const authenticated = (digest: string, keyId: string): string =>
  `\nholdfast backup ${FORM} sha256 ${digest} hmac-sha256 ${keyId} `;

const codeOf = (key: Uint8Array, text: string): Buffer =>
  createHmac("sha256", derived(key, "code", 32))
    .update(text)
    .digest();

/** @param key 32 random bytes */
export function appendLastLine(file: string, key: Uint8Array): void {
  const text = authenticated(digestOf(file, statSync(file).size), keyIdOf(key));
  appendFileSync(file, `${text}${codeOf(key, text).toString("hex")}\n`);
}

/**
 * What the last line of a file says. `verified`: the file is, byte by byte, as somebody with this key made it. `unknown`: it is
 * whole, but the line has no code (then the id is null), or one of a key that is not here. The others are no backup, or not one
 * as it was made: `missing` (no last line), `followed` (something comes after it), `newer` (a later form), `forged` (the code is
 * not this key's), `damaged` (the digest is another).
 */
export type LastLine =
  | { readonly is: "verified"; readonly keyId: string }
  | { readonly is: "unknown"; readonly keyId: string | null }
  | { readonly is: "missing" | "followed" | "newer" | "forged" | "damaged" };

/** Reads the last line of a file, and removes it where the file is `verified` or `unknown`. */
export function takeLastLine(file: string, keys: readonly Uint8Array[]): LastLine {
  const { size } = statSync(file);
  const tail = tailOf(file, size);
  const found = [...tail.matchAll(LINE)].at(-1);
  if (!found) return { is: "missing" };
  const [line, form, rest = ""] = found;
  if (found.index + line.length !== tail.length) return { is: "followed" };
  if (Number(form) > FORM) return { is: "newer" };
  const said = Number(form) === FORM_WITHOUT_CODE ? digestAlone(rest) : judged(rest, keys);
  if (!("digest" in said)) return said;
  const length = size - line.length;
  if (said.digest !== digestOf(file, length)) return { is: "damaged" };
  truncateSync(file, length);
  return said.line;
}

/** What a line says of the file, where its digest is the file's. */
type Said = { readonly digest: string; readonly line: LastLine } | LastLine;

const digestAlone = (rest: string): Said =>
  DIGEST.test(rest) ? { digest: rest, line: { is: "unknown", keyId: null } } : { is: "damaged" };

function judged(rest: string, keys: readonly Uint8Array[]): Said {
  const [, digest, keyId, code] = DIGEST_AND_CODE.exec(rest) ?? [];
  if (digest === undefined || keyId === undefined || code === undefined) return { is: "damaged" };
  const key = keys.find((each) => keyIdOf(each) === keyId);
  if (!key) return { digest, line: { is: "unknown", keyId } };
  const isOfKey = timingSafeEqual(codeOf(key, authenticated(digest, keyId)), Buffer.from(code, "hex"));
  return isOfKey ? { digest, line: { is: "verified", keyId } } : { is: "forged" };
}

/** The SHA-256 of the beginning of a file, in lower-case hex. The file may have any size. */
function digestOf(file: string, length: number): string {
  const hasher = new Bun.CryptoHasher("sha256");
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  const descriptor = openSync(file, "r");
  try {
    for (let read = 0; read < length; ) {
      const bytes = readSync(descriptor, chunk, 0, Math.min(CHUNK_BYTES, length - read), read);
      if (bytes === 0) throw new Error(`${file} became shorter`);
      hasher.update(chunk.subarray(0, bytes));
      read += bytes;
    }
    return hasher.digest("hex");
  } finally {
    closeSync(descriptor);
  }
}

function tailOf(file: string, size: number): string {
  const bytes = Buffer.alloc(Math.min(TAIL_BYTES, size));
  const descriptor = openSync(file, "r");
  try {
    const read = readSync(descriptor, bytes, 0, bytes.length, size - bytes.length);
    return bytes.toString("latin1", 0, read);
  } finally {
    closeSync(descriptor);
  }
}
