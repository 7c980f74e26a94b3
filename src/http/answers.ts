import { isRefusal, type Refusal } from "../core/errors.ts";
import type { PaymentAnswer } from "../services/x402/answer.ts";

/**
 * What a handler answers. The shell makes the response and adds the headers that every response has. The answers of the
 * money-moving verbs already have this form.
 */
export type Answer = {
  readonly status: number;
  /** Null for 204, which has no body. */
  readonly body: string | null;
  /** The body's media type; `application/json` by default. */
  readonly contentType?: string;
  /** The version of a warrant. It is sent as ETag. */
  readonly version?: number;
  /** Whether the answer repeats that of an earlier request with the same Idempotency-Key. */
  readonly replayed?: boolean;
  /** Headers of this answer only, such as Set-Cookie. */
  readonly headers?: Readonly<Record<string, string>>;
};

/** A handler may also refuse. The shell makes the error's body then. */
export type Result = Answer | Refusal;

/** A value that is not a promise. A promise would be answered as an empty object. */
type Settled<Value> = Value & (Value extends PromiseLike<unknown> ? never : unknown);

/** A value as JSON. */
export const json = <Value extends object>(value: Settled<Value>, status = 200): Answer => ({
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

/** The result of a purchase, or the refusal. A purchase has no version, so there is no ETag. */
export function payment(result: PaymentAnswer | Refusal): Result {
  if (isRefusal(result)) return result;
  const { status, body, bodyEncoding, bodyGone, replayed } = result;
  const headers = {
    ...(bodyEncoding === null ? {} : { "Service-Body-Encoding": bodyEncoding }),
    ...(bodyGone ? { "Service-Body-Gone": "true" } : {}),
  };
  return { status, body, replayed, headers };
}

/** 204: done, without a body. */
export const noContent = (headers: Readonly<Record<string, string>> = {}): Answer => ({
  status: 204,
  body: null,
  headers,
});
