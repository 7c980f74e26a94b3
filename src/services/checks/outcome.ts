import { isStopped } from "../../core/agent.ts";
import type { Check } from "../../core/check.ts";
import { EVALUATOR_VERSION } from "../../core/clauses/evaluator-version.ts";
import type { Evaluation } from "../../core/clauses/evidence.ts";
import type { ReasonCode } from "../../core/clauses/reason-codes.ts";
import type { Escalation } from "../../core/escalation.ts";
import { shareOf } from "../../core/money.ts";
import { isAboveThreshold } from "../../core/passkey.ts";
import { BUILT_IN_RULES, decideOutcome, type PolicyDecision, scoreInBps } from "../../core/policy.ts";
import { SYSTEM } from "../../core/roles.ts";
import { thumbprintOf } from "../../core/source-key.ts";
import { type Move, STATE_OF, type Warrant } from "../../core/warrant.ts";
import type { Put } from "../../store/change.ts";
import type { Snapshot } from "../../store/needs.ts";
import type { Context, FetchedEvidence } from "../context.ts";
import { raised } from "../raise-escalation.ts";
import { type MoveDetails, OF_WARRANT, STOPPING } from "../transition.ts";
import type { SourceSignature } from "./signer.ts";

/**
 * How a check ends: the policy decides, and the warrant moves accordingly, in one commit with the check's
 * record.
 */

/** The needs of the policy's decision. The move has needs of its own. */
export const DECIDING = { warrantPolicy: OF_WARRANT, ...STOPPING } as const;

/** The decision after a check, and the reason codes for its record. */
export type Outcome = { readonly decision: PolicyDecision; readonly reasonCodes: readonly ReasonCode[] };

/**
 * The policy's decision, except in three cases that escalate instead of paying: an agent of the warrant was killed, the
 * share comes to nothing, or the amount is above the passkey threshold.
 *
 * @throws where the pinned policy version is missing
 */
export function decideCheck(
  {
    warrantPolicy: policy,
    organisation,
    ...agents
  }: Snapshot<typeof DECIDING & { readonly warrant: string; readonly warrantAgent: typeof OF_WARRANT }>,
  warrant: Warrant,
  { score, reasonCodes }: Evaluation,
): Outcome {
  if (warrant.policyId !== (policy?.id ?? null)) throw new Error("the pinned policy is missing");
  const decision = decideOutcome(policy?.rules ?? BUILT_IN_RULES, score, reasonCodes);
  const escalateWith = (code: ReasonCode) => ({
    decision: { outcome: "escalate", releasedBps: 0, bandLabel: decision.bandLabel } as const,
    reasonCodes: [...reasonCodes, code],
  });
  if (decision.releasedBps === 0) return { decision, reasonCodes };
  if (isStopped(agents)) return escalateWith("agent_killed");
  if (shareOf(warrant.amount, decision.releasedBps) === 0n) return escalateWith("share_too_small");
  if (isAboveThreshold(organisation.passkeyThreshold, warrant)) return escalateWith("passkey_required");
  return { decision, reasonCodes };
}

/** The ids that a decision may need. They are drawn first, since deciding is pure. */
export const newOutcomeIds = (ctx: Context) => ({
  checkId: ctx.newId("check"),
  escalationId: ctx.newId("escalation"),
  eventId: ctx.newId("event"),
});
export type OutcomeIds = ReturnType<typeof newOutcomeIds>;

/** What a check is the record of, besides the policy's decision. */
export type Checked = {
  readonly id: string;
  readonly warrantId: string;
  readonly sourceUrl: string;
  readonly fetched: FetchedEvidence;
  readonly evaluation: Evaluation;
  readonly capsuleHash: string;
  readonly signature: SourceSignature | null;
};

/** The record of a check. */
export const checkOf = (
  { id, warrantId, sourceUrl, fetched, evaluation, capsuleHash, signature }: Checked,
  { decision, reasonCodes }: Outcome,
): Check => ({
  id,
  warrantId,
  sourceUrl,
  httpStatus: fetched.status,
  bytes: fetched.bytes,
  durationMs: fetched.durationMs,
  score: scoreInBps(evaluation.score),
  passed: evaluation.passed,
  reasonCodes,
  evidenceHash: evaluation.evidenceHash,
  details: evaluation.details,
  outcome: decision.outcome,
  bandLabel: decision.bandLabel,
  evaluatedAt: evaluation.evaluatedAt,
  evaluatorVersion: EVALUATOR_VERSION,
  signedBy: signature && thumbprintOf(signature.signer),
  capsuleHash,
});

/**
 * How a check moves its warrant: verifying → what was decided. The move writes the check's record and, where
 * a person has to decide, an escalation.
 *
 * @param countsForNobody whether no failure count changes: the service itself interrupted the work, or a seller that
 *   passed took no money
 */
export function moveOfCheck(
  warrant: Warrant,
  check: Check,
  decision: PolicyDecision,
  { escalationId, eventId }: OutcomeIds,
  now: number,
  countsForNobody: boolean,
): { readonly move: Move; readonly details: MoveDetails } {
  const escalates = decision.outcome === "escalate";
  const puts: Put[] = [{ kind: "check", row: check }];
  if (escalates) {
    const { id: checkId, score, reasonCodes } = check;
    const row = openEscalation(warrant, escalationId, { checkId, score, reasonCodes }, now);
    puts.push(...raised(row));
  }
  const verdict = countsForNobody ? "neither" : !check.passed ? "failed" : escalates ? "neither" : "clean";
  return {
    move: {
      to: STATE_OF[decision.outcome],
      by: "system",
      ...(decision.outcome === "partial_release" && { releasedBps: decision.releasedBps }),
    },
    details: {
      actor: SYSTEM,
      eventId,
      now,
      verdict,
      puts,
      check,
    },
  };
}

/** A new escalation: the warrant waits for a person from now on. */
export const openEscalation = (
  { id: warrantId, organisationId, mode }: Warrant,
  id: string,
  why: Pick<Escalation, "checkId" | "score" | "reasonCodes">,
  now: number,
): Escalation => ({
  id,
  organisationId,
  mode,
  warrantId,
  ...why,
  status: "open",
  decision: null,
  releasedBps: null,
  note: null,
  raisedBy: null,
  resolvedBy: null,
  createdAt: now,
  resolvedAt: null,
});
