import { type Asked, ByteBudget, type Claim } from "../core/byte-budget.ts";
import { isRefusal, type Refusal, refuse, refuseField } from "../core/errors.ts";
import { parseJsonText } from "../core/json-text.ts";
import { SECOND_MS } from "../core/time.ts";

/** Bodies of JSON objects, and of text where a route takes that, read with a cap on their bytes and their time (docs/idempotency, "Strict input"). */

const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export type JsonObject = Readonly<Record<string, unknown>>;
type Bytes = ArrayBuffer | Uint8Array;

/** The time limit of a body: one that is sent slowly holds a connection and memory. */
export const BODY_MS_MAX = 15 * SECOND_MS;
export const TOOK_TOO_LONG = refuseField("body", `took longer than ${BODY_MS_MAX / SECOND_MS} s`);

/**
 * The body that was read; undefined where there is none. It is wrapped, since a JSON object with the key
 * `refused` would be mistaken for a refusal.
 */
export type ReadBody = { readonly body: JsonObject | string | undefined };

/** The bytes of all bodies under way in this process: from the head of a request to its answer. */
export const BODIES_BYTES_MAX = 256 * 1024 * 1024;
/** How long a body may wait for its bytes. */
const ROOM_MS_MAX = 5 * SECOND_MS;
/** Of a body that waits Bun has read up to 1.2 MB, so few may wait. */
const WAITING_MAX = 64;

export const createBodyBudget = (bytesMax = BODIES_BYTES_MAX): ByteBudget =>
  new ByteBudget({
    bytesMax,
    liveBytes: bytesMax / 4,
    partyBytesMax: bytesMax / 4,
    waitingMax: WAITING_MAX,
    partyWaitingMax: WAITING_MAX / 4,
    waitingBytesMax: Number.POSITIVE_INFINITY,
  });

export const NO_ROOM = refuse(
  "rate_limit_exceeded",
  "The bodies of other requests fill the memory that there is for them.",
);

/**
 * The bytes that a body may take, from the head of its request: its length, else the most that it may have. Refused with
 * `validation_failed` where that is more than `bytesMax`.
 */
export function bodyBytesOf({ headers, body }: Request, bytesMax: number): number | Refusal {
  const length = headers.get("content-length");
  // `request.body` makes a stream, which is slow: it is used only where the length is not known.
  if (length === null) return body === null ? 0 : bytesMax;
  // A length that was sent twice reads "2, 2", which is not a number. It is refused too.
  return Number(length) <= bytesMax ? Number(length) : tooLong(bytesMax);
}

/** Bytes of the budget, or NO_ROOM where there are none in time. */
export async function claimBody(
  budget: ByteBudget,
  asked: Asked,
  waitMs = ROOM_MS_MAX,
): Promise<Claim | Refusal> {
  return (await budget.claimWithin(asked, waitMs)) ?? NO_ROOM;
}

export const NO_BODY: ReadBody = { body: undefined };
const EMPTY_BODY: ReadBody = { body: {} };

/** Reads the request's JSON object. Refused as by `readBytes`, and with `validation_failed` where the body is not a JSON object. */
export async function readJsonBody(
  request: Request,
  bytesMax: number,
  msMax: number,
): Promise<ReadBody | Refusal> {
  const bytes = await readBytes(request, bytesMax, msMax);
  if (isRefusal(bytes)) return bytes;
  const contentType = request.headers.get("content-type");
  if (bytes.byteLength === 0) return contentType === null ? NO_BODY : EMPTY_BODY;
  return isJson(contentType)
    ? parseJsonObject(bytes)
    : refuseField("Content-Type", "must be application/json");
}

/** Reads the request's text, which is UTF-8 whatever its type says. Refused as by `readBytes`. */
export async function readTextBody(
  request: Request,
  bytesMax: number,
  msMax: number,
): Promise<ReadBody | Refusal> {
  const bytes = await readBytes(request, bytesMax, msMax);
  if (isRefusal(bytes)) return bytes;
  const body = textOf(bytes);
  return isRefusal(body) ? body : { body };
}

/**
 * The bytes of a body, of the length that `bodyBytesOf` gives. Refused with `validation_failed` where it is longer than
 * `bytesMax`, and with TOOK_TOO_LONG where it is not complete after `msMax`. The rest may still arrive after that.
 */
async function readBytes(request: Request, bytesMax: number, msMax: number): Promise<Bytes | Refusal> {
  const isChunked = request.headers.get("content-length") === null;
  const sent: Promise<Bytes | Refusal> = isChunked ? readChunks(request, bytesMax) : request.arrayBuffer();
  const reading = sent.catch(cutOff);
  await endOfTurn();
  // A body that came together with the head is complete by now. Any other gets a timer.
  const isRead = Bun.peek.status(reading) === "fulfilled";
  return isRead ? reading : withinMs(msMax, reading);
}

const isJson = (contentType: string | null): boolean =>
  contentType !== null && /^application\/json\s*(;\s*charset="?utf-8"?\s*)?$/i.test(contentType);

/** The caller closed the connection before the end, so nobody reads this answer. */
const cutOff = (): Refusal => refuseField("body", "was cut off");

const tooLong = (bytesMax: number): Refusal => refuseField("body", `must be at most ${bytesMax / 1024} kB`);

async function readChunks(request: Request, bytesMax: number): Promise<Bytes | Refusal> {
  // One buffer for all: chunks of a byte each would take a hundred times as much.
  let bytes = new Uint8Array(0);
  let size = 0;
  for await (const chunk of request.body ?? []) {
    const end = size + chunk.length;
    if (end > bytesMax) return tooLong(bytesMax);
    if (end > bytes.length) {
      const longer = new Uint8Array(Math.min(bytesMax, Math.max(end, 2 * bytes.length)));
      longer.set(bytes.subarray(0, size));
      bytes = longer;
    }
    bytes.set(chunk, size);
    size = end;
  }
  return bytes.subarray(0, size);
}

/** The result of `reading`, or TOOK_TOO_LONG after `msMax`. */
async function withinMs<Read>(msMax: number, reading: Promise<Read>): Promise<Read | Refusal> {
  const late = Promise.withResolvers<Refusal>();
  const timer = setTimeout(() => late.resolve(TOOK_TOO_LONG), msMax);
  try {
    return await Promise.race([reading, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

let turn: Promise<void> | null = null;

/**
 * Resolves at the end of this turn of the event loop, when everything that the sockets had received is
 * delivered. All requests of a turn share one promise.
 */
function endOfTurn(): Promise<void> {
  turn ??= new Promise((resolve) => {
    setImmediate(() => {
      turn = null;
      resolve();
    });
  });
  return turn;
}

function textOf(bytes: Bytes): string | Refusal {
  try {
    return UTF_8.decode(bytes);
  } catch {
    return refuseField("body", "is not UTF-8");
  }
}

function parseJsonObject(bytes: Bytes): ReadBody | Refusal {
  const text = textOf(bytes);
  if (isRefusal(text)) return text;
  const parsed = parseJsonText(text);
  if ("problem" in parsed) return refuseField("body", parsed.problem);
  const { value } = parsed;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return refuseField("body", "must be a JSON object");
  }
  return { body: value as JsonObject };
}
