import { isRefusal, type Refusal } from "../core/errors.ts";
import type { Answer } from "../services/idempotency.ts";
import type { PaymentAnswer } from "../services/x402/answer.ts";
import type { Call } from "./call.ts";
import { refusalResponse } from "./errors.ts";

const JSON_HEADERS = { "Content-Type": "application/json" };
const REPLAYED = { "Idempotent-Replayed": "true" };

const etag = (version: number) => ({ ETag: `"${version}"` });

/** A resource or a refusal, as a response. */
export function respond(call: Call, result: object | Refusal, status = 200): Response {
  if (isRefusal(result)) return refusalResponse(call, result);
  return Response.json(result, { status });
}

/** A warrant, with its version as ETag. */
export function respondWarrant(call: Call, result: { readonly version: number } | Refusal): Response {
  if (isRefusal(result)) return refusalResponse(call, result);
  return Response.json(result, { headers: etag(result.version) });
}

/** What a money-moving verb answered; a replay says so. */
export function respondAnswer(call: Call, result: Answer | Refusal): Response {
  if (isRefusal(result)) return refusalResponse(call, result);
  const { status, body, version, replayed } = result;
  return new Response(body, {
    status,
    headers: {
      ...JSON_HEADERS,
      ...etag(version),
      ...(replayed && REPLAYED),
    },
  });
}

/** What a purchase came to. It has no version of its own, so no ETag. */
export function respondPayment(call: Call, result: PaymentAnswer | Refusal): Response {
  if (isRefusal(result)) return refusalResponse(call, result);
  const { status, body, bodyEncoding, replayed } = result;
  return new Response(body, {
    status,
    headers: {
      ...JSON_HEADERS,
      ...(bodyEncoding && { "Service-Body-Encoding": bodyEncoding }),
      ...(replayed && REPLAYED),
    },
  });
}
