import type { Budget } from "../core/rate.ts";
import type { Answer } from "./answers.ts";

/** Where not the window is used up, but a place is waited for: it may be free at any moment. */
const RETRY_SECONDS = "1";

/** An answer whose body is ready to be sent. */
export type SentAnswer = Omit<Answer, "body"> & {
  readonly body: string | Uint8Array | ReadableStream | null;
};

/** The response of an answer. All its headers are given at construction: setting them later is slower. */
export function responseOf(
  { status, body, contentType = "application/json", version, replayed, headers: own }: SentAnswer,
  budget: Budget,
  requestId: string,
  isHead: boolean,
  closes: boolean,
): Response {
  const resetSeconds = String(budget.resetSeconds);
  const headers: Record<string, string> = body === null ? {} : { "Content-Type": contentType };
  if (version !== undefined) headers.ETag = `"${version}"`;
  if (replayed) headers["Idempotent-Replayed"] = "true";
  if (own) Object.assign(headers, own);
  headers["X-Request-Id"] = requestId;
  headers["Cache-Control"] = "no-store";
  headers["X-Content-Type-Options"] = "nosniff";
  headers["RateLimit-Limit"] = String(budget.limit);
  headers["RateLimit-Remaining"] = String(budget.remaining);
  headers["RateLimit-Reset"] = resetSeconds;
  if (status === 429) headers["Retry-After"] = budget.exceeded ? resetSeconds : RETRY_SECONDS;
  if (closes) headers.Connection = "close";
  return new Response(isHead ? null : body, { status, headers });
}
