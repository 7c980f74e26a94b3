import { canonicalJson } from "../canonical.ts";
import { parseTime } from "../time.ts";
import { DOCUMENT_DEPTH_MAX } from "./limits.ts";

/** A body read as JSON: strict UTF-8, one value of at most 512 levels, perhaps after a byte-order mark. */
export type JsonDocument = { readonly value: unknown };

/** 1 kB: what `observed` keeps of a value, in bytes of JSON. */
const OBSERVED_BYTES_MAX = 1_024;

const documents = new WeakMap<Uint8Array, JsonDocument | null>();

/** The body as JSON; null where it is not JSON. Each body is parsed once, however many clauses read it. */
export function documentOf(body: Uint8Array): JsonDocument | null {
  const known = documents.get(body);
  if (known !== undefined) return known;
  const document = readDocument(body);
  documents.set(body, document);
  return document;
}

function readDocument(body: Uint8Array): JsonDocument | null {
  if (isTooDeep(body)) return null;
  try {
    // The decoder passes over a byte-order mark.
    const text = new TextDecoder("utf-8", { fatal: true }).decode(body);
    const value: unknown = JSON.parse(text);
    if (/__proto__|\\u005[fF]/.test(text)) forgetPrototypes(value);
    return { value };
  } catch {
    return null;
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Whether arrays and objects are nested too deep. Without a limit of our own the verdict would depend on how much stack a
 * machine has. Where the body is not JSON, the answer does not matter.
 */
function isTooDeep(body: Uint8Array): boolean {
  let depth = 0;
  for (let index = 0; index < body.length; index++) {
    const byte = body[index];
    if (byte === 0x5b || byte === 0x7b) {
      if (++depth > DOCUMENT_DEPTH_MAX) return true;
    } else if (byte === 0x5d || byte === 0x7d) {
      depth -= 1;
    } else if (byte === QUOTE) {
      // Skip the string.
      for (index++; index < body.length && body[index] !== QUOTE; index++)
        if (body[index] === BACKSLASH) index++;
    }
  }
  return false;
}

/**
 * A document may have members named `__proto__`. Its objects get no prototype, so that a look-up finds their own members
 * alone, and never the `__proto__` that every other object inherits.
 */
function forgetPrototypes(value: unknown): void {
  const open = [value];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next !== "object" || next === null) continue;
    for (const child of Object.values(next))
      if (typeof child === "object" && child !== null) open.push(child);
    if (!Array.isArray(next)) Object.setPrototypeOf(next, null);
  }
}

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];
const WHITESPACE = [0x20, 0x09, 0x0a, 0x0d];
const LEADING_MAX = 1_024;

/** Whether the body could be a JSON object, by its first byte that is no byte-order mark and not whitespace. */
export function mayBeObject(body: Uint8Array): boolean {
  const start = BYTE_ORDER_MARK.every((byte, index) => body[index] === byte) ? BYTE_ORDER_MARK.length : 0;
  for (const byte of body.subarray(start, LEADING_MAX)) if (!WHITESPACE.includes(byte)) return byte === 0x7b;
  return body.length > LEADING_MAX;
}

/**
 * Epoch ms of a top-level `generated_at` (docs/clauses, "data.freshness"). Undefined where the body has none: then `Last-Modified`
 * counts. Null where it cannot be read: then `Last-Modified` does not count either.
 */
export function statedTimeOf(body: Uint8Array): number | null | undefined {
  if (!mayBeObject(body)) return undefined;
  const value = documentOf(body)?.value;
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, "generated_at")) return undefined;
  return parseTime((value as { generated_at: unknown }).generated_at);
}

/** JSON equality: the order of keys is irrelevant, 1 equals 1.0, and only own members count. */
export function jsonEquals(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) return false;
  if (Array.isArray(left) !== Array.isArray(right)) return false;
  if (Array.isArray(left) && Array.isArray(right))
    return left.length === right.length && left.every((item, index) => jsonEquals(item, right[index]));
  const [a, b] = [left as Record<string, unknown>, right as Record<string, unknown>];
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && jsonEquals(a[name], b[name]))
  );
}

/**
 * A value as `observed` shows it: the value itself, or the beginning of its JSON text where that is longer than 1 kB. The
 * result is hashed, so a value with a lone surrogate, which has no hash, is shown as text too. Null where it cannot be shown.
 */
export function observedOf(value: unknown): unknown {
  try {
    const text = JSON.stringify(value);
    if (Buffer.byteLength(text) > OBSERVED_BYTES_MAX) return cutText(text);
    return canHash(value) ? value : text;
  } catch {
    return null;
  }
}

/** Whether RFC 8785 has a form for the value. */
export function canHash(value: unknown): boolean {
  try {
    canonicalJson(value);
    return true;
  } catch {
    return false;
  }
}

/** At most 1 kB of a text's UTF-8, with no character cut through. */
function cutText(text: string): string {
  const bytes = new TextEncoder().encode(text.slice(0, OBSERVED_BYTES_MAX)).subarray(0, OBSERVED_BYTES_MAX);
  return new TextDecoder().decode(bytes, { stream: true }).toWellFormed();
}
