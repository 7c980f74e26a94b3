import { isRefusal, type Refusal } from "../core/errors.ts";
import type { PaymentAnswer } from "../services/x402/answer.ts";

/**
 * What a handler answers; the shell makes one response of it, and adds the headers that every response has. What a
 * money-moving verb answers has this form already.
 */
export type Answer = {
  readonly status: number;
  /** Null where there is none, on 204. */
  readonly body: string | null;
  /** The body's; `application/json` where it is not said. */
  readonly contentType?: string;
  /** A warrant's, sent as ETag. */
  readonly version?: number;
  /** Whether the answer repeats that of an earlier request with the same Idempotency-Key. */
  readonly replayed?: boolean;
  /** Those that few answers have. */
  readonly headers?: Readonly<Record<string, string>>;
};

/** A handler may refuse: the shell makes the error's body. */
export type Result = Answer | Refusal;

/** JSON of a value. */
export const json = (value: object, status = 200): Answer => ({
  status,
  body: JSON.stringify(value),
  contentType: "application/json;charset=utf-8",
});

/** What a verb found or made, unless it refused. */
export const resource = (result: object | Refusal, status = 200): Result =>
  isRefusal(result) ? result : json(result, status);

/** A warrant with its version as ETag, unless it is refused. */
export const warrant = (result: { readonly version: number } | Refusal): Result =>
  isRefusal(result) ? result : { ...json(result), version: result.version };

/** What a purchase came to, unless it is refused. It has no version of its own, so no ETag. */
export function payment(result: PaymentAnswer | Refusal): Result {
  if (isRefusal(result)) return result;
  const { status, body, bodyEncoding, replayed } = result;
  return bodyEncoding === null
    ? { status, body, replayed }
    : { status, body, replayed, headers: { "Service-Body-Encoding": bodyEncoding } };
}

/** 204: done, and nothing to say. */
export const noContent = (headers: Readonly<Record<string, string>> = {}): Answer => ({
  status: 204,
  body: null,
  headers,
});
