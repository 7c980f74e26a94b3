import { canonicalJson, sha256 } from "../core/canonical.ts";
import { type Refusal, refuse, refuseField } from "../core/errors.ts";
import type { Caller } from "../core/roles.ts";
import type { Idempotency } from "../services/idempotency.ts";

const KEY = /^[\x20-\x7e]{1,255}$/;

/** The Idempotency-Key of a money-moving POST, or why there is none (docs/idempotency, "Idempotency"). */
export function readIdempotencyKey(key: string | null): string | Refusal {
  if (key === null || key === "") {
    return refuse(
      "idempotency_key_required",
      "Send an Idempotency-Key header: one for each thing you want done, the same on every retry.",
    );
  }
  return KEY.test(key) ? key : refuseField("Idempotency-Key", "must be 1 to 255 printable ASCII characters");
}

/**
 * The fingerprint covers whose request it is, the method, the path and the canonical JSON of the body. It is the agent's with
 * whichever of its API keys, or the person's. No body counts as an empty object.
 */
export const idempotencyOfRequest = (
  key: string,
  caller: Caller,
  method: string,
  path: string,
  body: unknown,
): Idempotency => ({
  key,
  fingerprint: sha256(
    `${caller.kind === "key" ? caller.agentId : caller.userId} ${method} ${path} ${canonicalJson(body ?? {})}`,
  ),
});

/** The version that `If-Match` requires; null where it requires none. A malformed header is refused. */
export function readIfMatch(headers: Headers): number | null | Refusal {
  const tag = headers.get("if-match");
  if (tag === null || tag === "*") return null;
  const version = /^"([1-9][0-9]{0,14})"$/.exec(tag)?.[1];
  return version === undefined
    ? refuseField("If-Match", 'must be one ETag of the warrant, such as "3"')
    : Number(version);
}
