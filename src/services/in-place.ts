import { type Refusal, refuse } from "../core/errors.ts";
import type { Party } from "../core/places.ts";
import type { Context } from "./context.ts";

/** No place was free in time. Nothing moved, and the key is free. */
export const TOO_MANY_CHECKS: Refusal = refuse(
  "rate_limit_exceeded",
  "Too many checks are running. Retry shortly with the same Idempotency-Key.",
);

/**
 * Does work that needs a place, and keeps the place until the work has ended. Where none is free at once, the work is first
 * done without: a replay and every other refusal come before the wait, and `TOO_MANY_CHECKS` only where a place is all that
 * is missing. While it waits it holds nothing: no snapshot, no key, no warrant.
 *
 * @param gone aborts where the caller has left, so that nobody waits for the answer
 * @param work answers `TOO_MANY_CHECKS` where it would have to begin, and has no place
 */
export async function inPlace<T>(
  { places }: Context,
  { organisationId, mode }: Party,
  gone: AbortSignal | null,
  work: (hasPlace: boolean) => Promise<T | Refusal>,
): Promise<T | Refusal> {
  const party = { organisationId, mode };
  let place = places.take(party);
  if (place === null) {
    const answer = await work(false);
    if (answer !== TOO_MANY_CHECKS) return answer;
    place = await places.wait(party, gone);
    if (place === null) return TOO_MANY_CHECKS;
  }
  try {
    return await work(true);
  } finally {
    place.leave();
  }
}
