import { isRefusal, type Refusal } from "../core/errors.ts";
import type { Answer } from "../services/intent.ts";
import type { Call } from "./call.ts";
import { refusalResponse } from "./errors.ts";

const JSON_HEADERS = { "Content-Type": "application/json" };

/** The version of the warrant in a resource: its own, or that of the warrant it carries. */
type Versioned = { readonly version?: number; readonly warrant?: { readonly version?: number } };

const etagOf = ({ version, warrant }: Versioned): Record<string, string> => {
  const current = warrant?.version ?? version;
  return current === undefined ? {} : { ETag: `"${current}"` };
};

/** A resource or a refusal, as a response. */
export function respond(call: Call, result: object | Refusal, status = 200): Response {
  if (isRefusal(result)) return refusalResponse(call, result);
  return Response.json(result, { status });
}

/** A warrant, with its version as ETag. */
export function respondWarrant(call: Call, result: Versioned | Refusal): Response {
  if (isRefusal(result)) return refusalResponse(call, result);
  return Response.json(result, { headers: etagOf(result) });
}

/** What a money-moving verb answered; a replay says so. */
export function respondAnswer(call: Call, result: Answer | Refusal): Response {
  if (isRefusal(result)) return refusalResponse(call, result);
  const { status, body, replayed } = result;
  return new Response(body, {
    status,
    headers: {
      ...JSON_HEADERS,
      ...etagOf(JSON.parse(body) as Versioned),
      ...(replayed && { "Idempotent-Replayed": "true" }),
    },
  });
}
