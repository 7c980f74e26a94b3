import { DECISION_CODES, type ReasonCode, SOURCE_CODES } from "./clauses/reason-codes.ts";
import { BPS_WHOLE, shareOf } from "./money.ts";
import { isAboveThreshold } from "./passkey.ts";
import { decideOutcome, type Outcome, type PolicyRules, refuseAboveMaximum } from "./policy.ts";
import type { State } from "./warrant.ts";

/** What the rules of a draft would have made of checks that were decided by others (docs/policies, "Back-test"). */

/** A check as it was decided, and of its warrant what the decision was about. */
export type DecidedCheck = {
  readonly checkId: string;
  readonly warrantId: string;
  readonly payee: string;
  readonly amount: bigint;
  readonly asset: string;
  /** Where the warrant is today: a person may have decided since. */
  readonly state: State;
  /** What the warrant has paid by today; null where nothing. */
  readonly releasedBps: number | null;
  /** Basis points, rounded. */
  readonly score: number;
  /** How many clauses were checked. */
  readonly clauses: number;
  readonly reasonCodes: readonly ReasonCode[];
  readonly outcome: Outcome;
  readonly evaluatedAt: number;
  /** Whether the seller was to be paid by x402's `exact`, which cannot be called back. */
  readonly isExactPayment: boolean;
};

/** What a policy leads to. A warrant above its maximum would not have been opened. */
export type Decided = {
  readonly outcome: Outcome | "not_opened";
  readonly releasedBps: number;
  readonly paid: bigint;
};

/** A check that the draft decides differently. */
export type Flip = { readonly check: DecidedCheck; readonly before: Decided; readonly after: Decided };

/** What changed of an asset, in its smallest unit: what is released besides, less what is no longer. */
export type ReleasedMore = ReadonlyMap<string, bigint>;

/** How the check was decided. A partial release settles its warrant in the same commit, so the warrant has its share. */
function decidedBefore({ outcome, amount, releasedBps }: DecidedCheck): Decided {
  if (outcome === "release") return paying(outcome, amount, BPS_WHOLE);
  return outcome === "partial_release" ? paying(outcome, amount, releasedBps ?? 0) : nothing(outcome);
}

/**
 * How the draft would have decided it. What stands above every policy stays as it was: a payment that cannot be called back, an
 * agent that was killed, a share of nothing, and the passkey threshold. Whether a check that paid nothing would have met that
 * threshold is not recorded, so today's is asked.
 *
 * @param threshold the organisation's passkey threshold of today
 */
export function decideByDraft(rules: PolicyRules, check: DecidedCheck, threshold: bigint | null): Decided {
  const { amount, asset, reasonCodes } = check;
  if (refuseAboveMaximum(rules, amount, asset)) return nothing("not_opened");
  if (isSettledByPayment(check)) return decidedBefore(check);
  const seen = reasonCodes.filter((code) => !isDecisionCode(code));
  const { outcome, releasedBps } = decideOutcome(rules, exactScoreOf(check), seen);
  const decided = releasedBps === 0 ? nothing(outcome) : paying(outcome, amount, releasedBps);
  // Money that has been paid on a chain is released, or waits for a person: it cannot return.
  if (check.isExactPayment && outcome !== "release") return nothing("escalate");
  if (releasedBps === 0) return decided;
  return decided.paid === 0n || isHeldBack(check, threshold) ? nothing("escalate") : decided;
}

/** The flip of a check; null where the draft decides it as it was decided. */
export function backTest(rules: PolicyRules, check: DecidedCheck, threshold: bigint | null): Flip | null {
  const before = decidedBefore(check);
  const after = decideByDraft(rules, check, threshold);
  const isSame = before.outcome === after.outcome && before.releasedBps === after.releasedBps;
  return isSame ? null : { check, before, after };
}

/** Adds a flip to the sums of each asset. */
export const withFlip = (sums: ReleasedMore, { check, before, after }: Flip): ReleasedMore =>
  new Map(sums).set(check.asset, (sums.get(check.asset) ?? 0n) + after.paid - before.paid);

const nothing = (outcome: Decided["outcome"]): Decided => ({ outcome, releasedBps: 0, paid: 0n });

const paying = (outcome: Outcome, amount: bigint, releasedBps: number): Decided => ({
  ...{ outcome, releasedBps, paid: shareOf(amount, releasedBps) },
});

/** The share of clauses that passed, which the stored score rounds. There are so few that only one share rounds to it. */
const exactScoreOf = ({ score, clauses }: DecidedCheck): number =>
  clauses === 0 ? 0 : Math.round((score / BPS_WHOLE) * clauses) / clauses;

const isDecisionCode = (code: ReasonCode): boolean => (DECISION_CODES as readonly string[]).includes(code);

/** Whether the state of a payment alone has decided: no policy is asked what to do with money whose fate is not known, or that never moved. */
function isSettledByPayment({ isExactPayment, outcome, reasonCodes }: DecidedCheck): boolean {
  const isUnreached = reasonCodes.some((code) => (SOURCE_CODES as readonly string[]).includes(code));
  return (
    isExactPayment &&
    (isUnreached ||
      outcome === "refund" ||
      reasonCodes.includes("payment_unknown") ||
      reasonCodes.includes("payment_unused"))
  );
}

/** Whether a payment would have waited for a person, whatever the policy said. */
function isHeldBack(check: DecidedCheck, threshold: bigint | null): boolean {
  if (decidedBefore(check).paid > 0n) return false;
  const { reasonCodes } = check;
  return (
    reasonCodes.includes("agent_killed") ||
    reasonCodes.includes("passkey_required") ||
    isAboveThreshold(threshold, check)
  );
}
