import { type Refusal, refuse } from "./errors.ts";
import {
  type Charge,
  refuseByLimits,
  type SessionLimits,
  totalAfter,
  type WindowUses,
} from "./session-limits.ts";
import { isoTime } from "./time.ts";

/**
 * An agent's budget: a ceiling, an optional number of warrants, a failure budget and an end (docs/sessions,
 * "Spend sessions"), and the limits that it may have besides.
 */
export type SpendSession = SessionLimits & {
  readonly id: string;
  readonly agentId: string;
  readonly amountCeiling: bigint;
  /** The amount that is held or paid under the session. What a settlement returns is subtracted again. */
  readonly amountSpent: bigint;
  /** The running total of what was held under the session, whatever returned since (`totalAfter`). */
  readonly amountHeld: bigint;
  /** When it last held something, in the time of its windows (`WindowUses`). Null before its first hold. */
  readonly heldAt: number | null;
  readonly warrantLimit: number | null;
  readonly warrantCount: number;
  readonly failureBudget: number;
  readonly failureCount: number;
  readonly expiresAt: number;
  readonly revokedAt: number | null;
  readonly createdAt: number;
};

/**
 * The session after a hold was charged to it, or the first limit that forbids the hold, in a fixed order. The ceiling is in
 * units of USDC, so other assets are refused (docs/sessions, "Spend sessions").
 */
export function chargeSession(
  session: SpendSession,
  charge: Charge,
  uses: WindowUses,
  now: number,
): SpendSession | Refusal {
  const { amount, asset } = charge;
  if (session.revokedAt !== null) {
    return refuse(
      "session_revoked",
      `The spend session ${session.id} was revoked at ${isoTime(session.revokedAt)}.`,
    );
  }
  if (session.expiresAt <= now) {
    return refuse(
      "session_expired",
      `The spend session ${session.id} expired at ${isoTime(session.expiresAt)}.`,
    );
  }
  if (session.failureCount >= session.failureBudget) {
    return refuse(
      "session_failure_budget_spent",
      `The spend session ${session.id} has had ${session.failureCount} failures in a row; its budget is ${session.failureBudget}.`,
    );
  }
  if (session.warrantLimit !== null && session.warrantCount >= session.warrantLimit) {
    return refuse(
      "session_warrant_limit_reached",
      `The spend session ${session.id} has opened ${session.warrantCount} of its ${session.warrantLimit} warrants.`,
    );
  }
  if (asset !== "USDC") {
    return refuse(
      "session_ceiling_exceeded",
      `The spend session ${session.id} has a ceiling of ${session.amountCeiling} in USDC, ${session.amountSpent} is spent, and ${amount} ${asset} was requested.`,
    );
  }
  if (session.amountSpent + amount > session.amountCeiling) {
    return refuse(
      "session_ceiling_exceeded",
      `The spend session ${session.id} has a ceiling of ${session.amountCeiling}, ${session.amountSpent} is spent, and ${amount} was requested.`,
    );
  }
  const limited = refuseByLimits(session, charge, uses);
  if (limited) return limited;
  return {
    ...session,
    amountSpent: session.amountSpent + amount,
    amountHeld: totalAfter(session.amountHeld, amount),
    heldAt: uses.at,
    warrantCount: session.warrantCount + 1,
  };
}

/** The session after a settlement returned part of a hold, or all of it. */
export const giveBack = (session: SpendSession, returned: bigint): SpendSession => ({
  ...session,
  amountSpent: session.amountSpent - returned,
});
