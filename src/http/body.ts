import { type Refusal, refuseField } from "../core/errors.ts";

/** Bodies of JSON objects, read with a cap and checked so that nothing passes by mistake (decisions.md, Warrants). */

const DEPTH_MAX = 64;
const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export type JsonObject = Readonly<Record<string, unknown>>;

/** The request's JSON object; null where it has no body; else `validation_failed`. `bytesMax` caps what is read. */
export async function readJsonBody(request: Request, bytesMax: number): Promise<JsonObject | null | Refusal> {
  if (request.body === null) return null;
  const bytes = await readBytes(request, bytesMax);
  if (bytes === null) return refuseField("body", `must be at most ${bytesMax / 1024} kB`);
  if (bytes.length === 0) return null;
  if (!isJson(request.headers.get("content-type"))) {
    return refuseField("Content-Type", "must be application/json");
  }
  return parseJsonObject(bytes);
}

const isJson = (contentType: string | null): boolean =>
  contentType !== null && /^application\/json\s*(;\s*charset="?utf-8"?\s*)?$/i.test(contentType);

async function readBytes(request: Request, bytesMax: number): Promise<Uint8Array | null> {
  const length = request.headers.get("content-length");
  if (length !== null) {
    return Number(length) <= bytesMax ? new Uint8Array(await request.arrayBuffer()) : null;
  }
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.length;
    if (size > bytesMax) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function parseJsonObject(bytes: Uint8Array): JsonObject | Refusal {
  let text: string;
  let value: unknown;
  try {
    text = UTF_8.decode(bytes);
    value = JSON.parse(text);
  } catch {
    return refuseField("body", "is not JSON in UTF-8");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return refuseField("body", "must be a JSON object");
  }
  const keys = countKeys(value);
  if (typeof keys === "string") return refuseField("body", keys);
  // A key that is repeated was dropped by the parser: the text has a colon more than the value has keys.
  if (keys !== countColons(text)) return refuseField("body", "has the same key twice in one object");
  return value as JsonObject;
}

/** How many keys the objects in a value have, or what is wrong with it. */
function countKeys(root: object): number | string {
  let count = 0;
  let problem: string | null = null;
  const checkText = (text: string) => {
    if (!text.isWellFormed()) problem = "has a lone surrogate in a string";
  };
  const visit = (value: unknown, depth: number): void => {
    if (typeof value === "string") checkText(value);
    if (typeof value === "number" && !Number.isFinite(value)) problem = "has a number that is out of range";
    if (typeof value !== "object" || value === null) return;
    if (depth > DEPTH_MAX) {
      problem = `is nested deeper than ${DEPTH_MAX}`;
      return;
    }
    if (Array.isArray(value)) {
      for (const item of value) visit(item, depth + 1);
      return;
    }
    for (const key of Object.keys(value)) {
      count += 1;
      checkText(key);
      visit((value as JsonObject)[key], depth + 1);
    }
  };
  visit(root, 0);
  return problem ?? count;
}

const QUOTE = 34;
const COLON = 58;
const BACKSLASH = 92;

/** The colons of a JSON text that stand outside strings: one for each key that was written. */
function countColons(text: string): number {
  let count = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === COLON) count += 1;
    if (code !== QUOTE) continue;
    // On to the end of the string.
    for (index++; text.charCodeAt(index) !== QUOTE; index++) {
      if (text.charCodeAt(index) === BACKSLASH) index++;
    }
  }
  return count;
}
