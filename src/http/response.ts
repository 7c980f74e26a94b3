import type { Budget } from "../core/rate.ts";
import type { Answer } from "./answers.ts";

/** The response of an answer. All headers are given at once: setting them one by one on a response costs more. */
export function responseOf(
  { status, body, contentType = "application/json", version, replayed, headers: own }: Answer,
  budget: Budget,
  requestId: string,
  isHead: boolean,
  closes: boolean,
): Response {
  const resetSeconds = String(budget.resetSeconds);
  const headers: Record<string, string> = {
    "X-Request-Id": requestId,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "RateLimit-Limit": String(budget.limit),
    "RateLimit-Remaining": String(budget.remaining),
    "RateLimit-Reset": resetSeconds,
  };
  if (body !== null) headers["Content-Type"] = contentType;
  if (version !== undefined) headers.ETag = `"${version}"`;
  if (replayed) headers["Idempotent-Replayed"] = "true";
  if (status === 429) headers["Retry-After"] = resetSeconds;
  if (closes) headers.Connection = "close";
  if (own) Object.assign(headers, own);
  return new Response(isHead ? null : body, { status, headers });
}
