import { type Refusal, refuse } from "../../core/errors.ts";

/** Checks in flight in the process, each with a deliverable of up to 10 MiB, as sent and as decoded. */
export const CHECKS_MAX = 256;

export const TOO_MANY_CHECKS: Refusal = refuse(
  "rate_limit_exceeded",
  "Too many checks are running. Retry shortly with the same Idempotency-Key.",
);

/** Counts the checks in flight, in process memory. */
export type CheckLimiter = {
  /** Whether one more may begin. If so it counts until it leaves. */
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
