import { isRefusal, type Refusal, refuseField } from "../core/errors.ts";
import { parseJsonText } from "../core/json-text.ts";
import { SECOND_MS } from "../core/time.ts";

/** Bodies of JSON objects, read with a cap and checked so that nothing passes by mistake (decisions.md, Warrants). */

const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export type JsonObject = Readonly<Record<string, unknown>>;

/** A body that trickles holds a connection and what has come of it. */
export const BODY_MS_MAX = 15 * SECOND_MS;
export const TOOK_TOO_LONG = refuseField("body", `took longer than ${BODY_MS_MAX / SECOND_MS} s`);

/**
 * The request's JSON object; null where it has no body; else `validation_failed`. `bytesMax` caps what is read. After
 * `msMax` it is TOOK_TOO_LONG, and the rest may still be on its way.
 */
export async function readJsonBody(
  request: Request,
  bytesMax: number,
  msMax: number,
): Promise<JsonObject | null | Refusal> {
  if (request.body === null) return null;
  const bytes = await withinMs(msMax, readBytes(request, bytesMax).catch(cutOff));
  if (bytes === null) return refuseField("body", `must be at most ${bytesMax / 1024} kB`);
  if (isRefusal(bytes)) return bytes;
  if (bytes.length === 0) return null;
  if (!isJson(request.headers.get("content-type"))) {
    return refuseField("Content-Type", "must be application/json");
  }
  return parseJsonObject(bytes);
}

const isJson = (contentType: string | null): boolean =>
  contentType !== null && /^application\/json\s*(;\s*charset="?utf-8"?\s*)?$/i.test(contentType);

/** The caller hung up in the middle: no fault of ours, and nobody hears the answer. */
const cutOff = (): Refusal => refuseField("body", "was cut off");

async function withinMs<Read>(msMax: number, reading: Promise<Read>): Promise<Read | Refusal> {
  const late = Promise.withResolvers<Refusal>();
  const timer = setTimeout(() => late.resolve(TOOK_TOO_LONG), msMax);
  try {
    return await Promise.race([reading, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

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
  try {
    text = UTF_8.decode(bytes);
  } catch {
    return refuseField("body", "is not UTF-8");
  }
  const parsed = parseJsonText(text);
  if ("problem" in parsed) return refuseField("body", parsed.problem);
  const { value } = parsed;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return refuseField("body", "must be a JSON object");
  }
  return value as JsonObject;
}
