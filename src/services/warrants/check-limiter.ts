import { type Refusal, refuse } from "../../core/errors.ts";

/**
 * How many checks may run in the process. Each may hold a deliverable of 10 MiB twice: as it was sent, and
 * decoded.
 */
export const CHECKS_MAX = 256;

export const TOO_MANY_CHECKS: Refusal = refuse(
  "rate_limit_exceeded",
  "Too many checks are running. Retry shortly with the same Idempotency-Key.",
);

/** Counts the checks in flight, in process memory. */
export type CheckLimiter = {
  /** Whether one more check may begin. If so, it counts until `leave` is called. */
  enter(organisationId: string): boolean;
  leave(organisationId: string): void;
};

/** At most `checksMax` in all, of which one organisation has at most half. */
export function createCheckLimiter(checksMax = CHECKS_MAX): CheckLimiter {
  const running = new Map<string, number>();
  let total = 0;
  return {
    enter(organisationId) {
      const own = running.get(organisationId) ?? 0;
      if (total >= checksMax || own >= Math.ceil(checksMax / 2)) return false;
      running.set(organisationId, own + 1);
      total++;
      return true;
    },
    leave(organisationId) {
      const own = running.get(organisationId) ?? 0;
      if (own > 1) running.set(organisationId, own - 1);
      else running.delete(organisationId);
      total--;
    },
  };
}
