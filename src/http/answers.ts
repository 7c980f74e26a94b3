import { isUtf8 } from "node:buffer";
import type { Claim } from "../core/byte-budget.ts";
import { type ErrorCode, isRefusal, type Refusal } from "../core/errors.ts";
import type { PaymentAnswer } from "../services/x402/answer.ts";
import { type LongBody, PIECE_BYTES, type Room } from "./sending.ts";

/**
 * What a handler answers. The shell makes the response and adds the headers that every response has. The answers of the
 * money-moving verbs already have this form.
 */
export type Answer = {
  readonly status: number;
  /** Null for 204, which has no body. */
  readonly body: string | LongBody | ReadableStream<Uint8Array> | null;
  /** The body's media type; `application/json` by default. */
  readonly contentType?: string;
  /** The version of a warrant. It is sent as ETag. */
  readonly version?: number;
  /** Whether the answer repeats that of an earlier request with the same Idempotency-Key. */
  readonly replayed?: boolean;
  /** The code of the refusal that this is; it is not sent again. */
  readonly refused?: ErrorCode;
  /** Headers of this answer only, such as Set-Cookie. */
  readonly headers?: Readonly<Record<string, string>>;
};

/** A handler may also refuse. The shell makes the error's body then. */
export type Result = Answer | Refusal;

/** A value that is not a promise. A promise would be answered as an empty object. */
type Settled<Value> = Value & (Value extends PromiseLike<unknown> ? never : unknown);

/** A value as JSON. */
export const json = <Value extends object>(
  value: Settled<Value>,
  status = 200,
): Answer & { readonly body: string } => ({
  status,
  body: JSON.stringify(value),
  contentType: "application/json;charset=utf-8",
});

/** The resource that a verb returned, as JSON, or its refusal. */
export const resource = <Value extends object>(result: Settled<Value>, status = 200): Result =>
  isRefusal(result) ? result : json<object>(result, status);

/** A warrant with its version as ETag, or the refusal. */
export const warrant = (result: { readonly version: number } | Refusal): Result =>
  isRefusal(result) ? result : { ...json(result), version: result.version };

/**
 * The result of a purchase with the seller's answer in it, or the refusal. The seller's bytes are the same at every replay, as
 * text or, where they are not UTF-8, as base64. A purchase has no version, so there is no ETag.
 */
export async function payment(result: PaymentAnswer | Refusal, room: Room): Promise<Result> {
  if (isRefusal(result)) return result;
  const { status, body, content, isGone, replayed } = result;
  const gone = { status, body, replayed, headers: { "Service-Body-Gone": "true" } };
  if (isGone) return gone;
  if (content === null) return { status, body, replayed };
  const claim = await room(content.length);
  if (isRefusal(claim)) return claim;
  let bytes: Uint8Array | null = null;
  try {
    bytes = await content.read();
  } finally {
    // Whoever sends the bytes ends the claim. Where there are none, or the read failed, nobody does.
    if (bytes === null) claim?.end();
  }
  if (bytes === null) return gone;
  const isText = isUtf8(bytes);
  const headers = isText ? {} : { "Service-Body-Encoding": "base64" };
  return { status, body: filled(body, bytes, isText, claim), replayed, headers };
}

const EMPTY = '""}';

/** JSON that ends with an empty string, with the content in the string's place. */
function filled(json: string, content: Uint8Array, isText: boolean, claim: Claim | null): LongBody {
  if (!json.endsWith(EMPTY)) throw new Error("an answer without a place for its body");
  return {
    claim,
    *pieces() {
      yield Buffer.from(json.slice(0, 1 - EMPTY.length));
      const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
      for (let at = 0; at < content.length; at += PIECE_BYTES) {
        const piece = content.subarray(at, at + PIECE_BYTES);
        // A character that is cut by the end of a piece comes with the next one.
        const isLast = at + PIECE_BYTES >= content.length;
        const text = isText
          ? decoder.decode(piece, { stream: !isLast })
          : Buffer.from(piece).toString("base64");
        yield Buffer.from(JSON.stringify(text).slice(1, -1));
      }
      yield Buffer.from(EMPTY.slice(1));
    },
  };
}

export const BYTES = "application/octet-stream";

/** Bytes that are short enough to be sent at once. */
export const bytes = (body: Uint8Array, headers: Readonly<Record<string, string>>): Answer => ({
  status: 200,
  body: { claim: null, pieces: () => [body] },
  contentType: BYTES,
  headers,
});

/** 204: done, without a body. */
export const noContent = (headers: Readonly<Record<string, string>> = {}): Answer => ({
  status: 204,
  body: null,
  headers,
});
