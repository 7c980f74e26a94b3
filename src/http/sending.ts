import { type Asked, ByteBudget, type Claim } from "../core/byte-budget.ts";
import { isRefusal, type Refusal, refuse } from "../core/errors.ts";
import { SECOND_MS } from "../core/time.ts";

/**
 * Long answers. They are sent in pieces, as fast as the caller takes them, and their bytes come out of a budget
 * until the last piece has gone (docs/idempotency, "Memory").
 */

/** A body that is made while it is sent. */
export type LongBody = {
  /** The memory that it takes meanwhile; null where it is so short that it needs none of the budget. */
  readonly claim: Claim | null;
  pieces(): Iterable<Uint8Array>;
};

/** How long a piece is before it is encoded. A multiple of three, so that the base64 of pieces is that of the whole. */
export const PIECE_BYTES = 60 * 1024;
/** What is shorter needs no budget: the system's buffer of a connection takes it whole. */
const SHORT_BYTES = 256 * 1024;
/** All long answers that are being sent. */
const BYTES_MAX = 128 * 1024 * 1024;
/** What waits is in memory already. */
const WAITING_BYTES_MAX = BYTES_MAX / 2;
const WAITING_MAX = 64;
const ROOM_MS_MAX = 5 * SECOND_MS;
/** How long a caller may take for one answer. */
const SENDING_MS_MAX = 120 * SECOND_MS;

export const createAnswerBudget = (bytesMax = BYTES_MAX): ByteBudget =>
  new ByteBudget({
    bytesMax,
    liveBytes: bytesMax / 4,
    partyBytesMax: bytesMax / 4,
    waitingMax: WAITING_MAX,
    partyWaitingMax: WAITING_MAX / 4,
    waitingBytesMax: Math.min(WAITING_BYTES_MAX, bytesMax),
  });

/** Memory for an answer of this many bytes, before they are read; null where it is so short that it needs none. */
export type Room = (bytes: number) => Promise<Claim | null | Refusal>;

export const roomIn =
  (budget: ByteBudget, asked: Omit<Asked, "bytes">): Room =>
  async (bytes) =>
    bytes <= PIECE_BYTES
      ? null
      : ((await budget.claimWithin({ ...asked, bytes }, ROOM_MS_MAX)) ?? NO_ROOM_TO_SEND);

/** Nothing of the answer is lost: a read may be repeated, and a purchase is replayed. */
const NO_ROOM_TO_SEND: Refusal = refuse(
  "rate_limit_exceeded",
  "The answers to other requests fill the memory that there is for them. Retry shortly, with the same Idempotency-Key where there is one.",
);

type Body = string | LongBody | ReadableStream<Uint8Array> | null;

/** Whether the body needs no budget, and is sent as it is. */
export const isShort = <A extends { readonly body: Body }>(
  answer: A,
): answer is A & { readonly body: string | null } =>
  answer.body === null || (typeof answer.body === "string" && answer.body.length <= SHORT_BYTES);

/** What is sent of a body that is not short: all of it, or a stream; a refusal where there is no memory for it. */
export async function sendable(
  body: Body,
  room: Room,
  msMax = SENDING_MS_MAX,
): Promise<Uint8Array | ReadableStream | null | Refusal> {
  // A stream of events has its own limits, and keeps nothing in memory.
  if (body instanceof ReadableStream) return body;
  const long = typeof body === "string" ? await longText(body, room) : body;
  if (long === null || isRefusal(long)) return long;
  return long.claim === null ? Buffer.concat([...long.pieces()]) : streamOf(long, long.claim, msMax);
}

async function longText(text: string, room: Room): Promise<LongBody | Refusal> {
  const bytes = Buffer.from(text);
  const claim = await room(bytes.length);
  if (isRefusal(claim)) return claim;
  return {
    claim,
    *pieces() {
      for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
    },
  };
}

/** It ends the claim when all has been taken, when the caller has gone, and at the latest when the time is up. */
function streamOf(long: LongBody, claim: Claim, msMax: number): ReadableStream<Uint8Array> {
  // Null once the claim has ended: what is not counted any more is not kept either.
  let pieces: Iterator<Uint8Array> | null = long.pieces()[Symbol.iterator]();
  const end = (): void => {
    clearTimeout(timer);
    pieces = null;
    claim.end();
  };
  // Bun closes a connection on which nothing is taken. This is for one on which little is.
  const timer = setTimeout(end, msMax);
  timer.unref();
  return new ReadableStream(
    {
      pull(controller) {
        const next = pieces?.next();
        if (next === undefined) {
          controller.error(new Error("the answer was not taken in time"));
        } else if (next.done) {
          end();
          controller.close();
        } else {
          controller.enqueue(next.value);
        }
      },
      cancel: end,
    },
    // Nothing is made before it can be sent.
    { highWaterMark: 0 },
  );
}
