import type { Budget } from "../core/rate.ts";
import type { Answer } from "./answers.ts";

/** Where not the window is used up, but a place is waited for: it may be free at any moment. */
const RETRY_SECONDS = "1";

/** An answer whose body is ready to be sent. */
export type SentAnswer = Omit<Answer, "body"> & {
  readonly body: string | Uint8Array | ReadableStream | null;
};

/**
 * A year, in which a browser asks this host by https alone (RFC 6797). Other hosts of the domain are their owners' business: no
 * includeSubDomains.
 */
const ONLY_HTTPS = `max-age=${365 * 24 * 60 * 60}`;

type Around = {
  readonly budget: Budget;
  readonly requestId: string;
  readonly isHead: boolean;
  readonly closes: boolean;
  /** Whether people reach the service by https. */
  readonly onlyHttps: boolean;
};

/** The response of an answer. All its headers are given at construction: setting them later is slower. */
export function responseOf(
  { status, body, contentType = "application/json", version, replayed, headers: own }: SentAnswer,
  { budget, requestId, isHead, closes, onlyHttps }: Around,
): Response {
  const resetSeconds = String(budget.resetSeconds);
  const headers: Record<string, string> = body === null ? {} : { "Content-Type": contentType };
  if (version !== undefined) headers.ETag = `"${version}"`;
  if (replayed) headers["Idempotent-Replayed"] = "true";
  if (own) Object.assign(headers, own);
  headers["X-Request-Id"] = requestId;
  headers["Cache-Control"] ??= "no-store";
  headers["X-Content-Type-Options"] = "nosniff";
  if (onlyHttps) headers["Strict-Transport-Security"] = ONLY_HTTPS;
  headers["RateLimit-Limit"] = String(budget.limit);
  headers["RateLimit-Remaining"] = String(budget.remaining);
  headers["RateLimit-Reset"] = resetSeconds;
  if (status === 429 || status === 503)
    headers["Retry-After"] = budget.exceeded ? resetSeconds : RETRY_SECONDS;
  if (closes) headers.Connection = "close";
  // Nobody reads it, so that it would hold what it has taken.
  if (isHead && body instanceof ReadableStream) void body.cancel();
  return new Response(isHead ? null : body, { status, headers });
}
