import { type Check, checkHashOf } from "../../core/check.ts";
import type { Evaluation, Evidence } from "../../core/clauses/evidence.ts";
import type { ReasonCode } from "../../core/clauses/reason-codes.ts";
import { schemaNamesOf } from "../../core/clauses/registry.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import { shareOf } from "../../core/money.ts";
import { isAboveThreshold } from "../../core/passkey.ts";
import { BUILT_IN_RULES, decideOutcome, type PolicyDecision, scoreInBps } from "../../core/policy.ts";
import { ACCESS, actorOf, type Caller, refuseAccess, SYSTEM } from "../../core/roles.ts";
import { STATE_OF, type Warrant } from "../../core/warrant.ts";
import type { Purchase } from "../../core/x402/purchase.ts";
import type { Decision, Row, Snapshot } from "../../store/store.ts";
import type { Context, FetchedEvidence } from "../context.ts";
import {
  type Answer,
  bindKey,
  type Intent,
  needsOf,
  recordAnswer,
  refuseEndedCaller,
  refuseUsedKey,
  replayOf,
} from "../intent.ts";
import { warrantResource } from "../resources.ts";
import { TOO_MANY_CHECKS } from "./check-limiter.ts";
import { decideExpiry } from "./expire.ts";
import { interruptCheck } from "./interrupt.ts";
import { type Moved, moveWarrant, refuseOtherVersion, warrantNotFound } from "./transition.ts";

export type VerifyInput = {
  readonly warrantId: string;
  /** An http or https URL, already checked in form; its address is checked when it is fetched. */
  readonly sourceUrl: string;
  /** The version that `If-Match` names, or null. */
  readonly ifMatch: number | null;
};

/**
 * Verifies a warrant: fetches the deliverable, evaluates every clause and lets the policy decide. Two commands with the
 * fetch between them; what a crash leaves between them, recovery undoes. Answers 200 with the warrant as the policy left it.
 */
export async function verifyWarrant(
  ctx: Context,
  caller: Caller,
  input: VerifyInput,
  intent: Intent,
): Promise<Answer | Refusal> {
  const refused = refuseAccess(caller, ACCESS.verifyWarrant);
  if (refused) return refused;
  const admitted = ctx.checkLimiter.enter(caller.organisationId);
  try {
    const begun = await beginCheck(ctx, caller, input, intent, admitted);
    if (isRefusal(begun) || "replayed" in begun) return begun;
    return await runCheck(ctx, begun, input.sourceUrl, intent);
  } finally {
    if (admitted) ctx.checkLimiter.leave(caller.organisationId);
  }
}

/** Fetches, evaluates and completes a check that has begun. */
async function runCheck(
  ctx: Context,
  begun: Warrant,
  sourceUrl: string,
  intent: Intent,
): Promise<Answer | Refusal> {
  try {
    const fetched = await ctx.fetchEvidence(sourceUrl);
    const evaluation = await evaluateEvidence(ctx, begun, fetched.evidence, ctx.now());
    return await completeCheck(ctx, begun, sourceUrl, fetched, evaluation, intent);
  } catch (error) {
    // An unexpected fault decides nothing: the warrant is held again and the key is free.
    await interruptCheck(ctx, begun);
    // The evaluator was busy for too long.
    if (isRefusal(error)) return TOO_MANY_CHECKS;
    throw error;
  }
}

/** Every clause of the warrant against the evidence, as of a time. Rejects with a refusal where the evaluator has no place. */
export function evaluateEvidence(
  ctx: Context,
  { organisationId, spec: { clauses } }: Warrant,
  evidence: Evidence,
  now: number,
): Promise<Evaluation> {
  const schemas = ctx.store.reader.schemas.named(organisationId, schemaNamesOf(clauses));
  return ctx.evaluate({
    clauses,
    evidence,
    schemas: Object.fromEntries(
      schemas.map(({ name, schemaHash, schema }) => [name, { hash: schemaHash, schema }]),
    ),
    now,
    callerKey: organisationId,
  });
}

/**
 * held → verifying, and the key bound. A warrant past its deadline expires instead, and the verify is refused. What is
 * not admitted begins nothing, and is still replayed or told what else is wrong.
 */
function beginCheck(
  ctx: Context,
  caller: Caller,
  input: VerifyInput,
  intent: Intent,
  admitted: boolean,
): Promise<Warrant | Answer | Refusal> {
  const eventId = ctx.newId("event");
  const now = ctx.now();
  return ctx.store.execute<Warrant | Answer>({
    scope: caller,
    needs: {
      ...needsOf(caller, intent),
      warrantId: input.warrantId,
    },
    decide: (snapshot): Decision<Warrant | Answer> => {
      const ended = refuseEndedCaller(caller, ACCESS.verifyWarrant, snapshot, now);
      if (ended) return { answer: ended };
      const replay = replayOf(snapshot.idempotency, intent);
      if (replay) return { answer: replay };
      const used = refuseUsedKey(snapshot.idempotency, intent);
      if (used) return { answer: used };
      const { warrant } = snapshot;
      if (!warrant) return { answer: warrantNotFound() };
      const other = refuseOtherVersion(warrant, input.ifMatch);
      if (other) return { answer: other };
      const moved = moveWarrant(
        snapshot,
        { to: "verifying", by: "caller" },
        { actor: actorOf(caller), eventId, now },
      );
      if (isRefusal(moved)) return { answer: moved };
      if (snapshot.agent?.status === "killed") {
        return { answer: refuse("illegal_transition", "The warrant's agent was killed; a person decides.") };
      }
      const expiry = decideExpiry(snapshot, eventId, now);
      if (expiry) {
        const answer = refuse(
          "illegal_transition",
          "The warrant's deadline has passed; the hold was returned.",
        );
        return { answer, change: expiry };
      }
      const foreign = refuseForeignKey(snapshot, caller, warrant);
      if (foreign) return { answer: foreign };
      if (!admitted) return { answer: TOO_MANY_CHECKS };
      return {
        answer: moved.warrant,
        change: { ...moved.change, idempotency: bindKey(intent, warrant.id, now) },
      };
    },
  });
}

/** A killed agent's keys only read; a warrant of an agent is verified by that agent's key or by a person. */
function refuseForeignKey(snapshot: Snapshot, caller: Caller, warrant: Warrant): Refusal | null {
  if (caller.kind !== "key") return null;
  if (warrant.agentId !== null && warrant.agentId !== caller.agentId) {
    return refuse(
      "agent_key_mismatch",
      "This warrant belongs to another agent; its own key or a person can verify it.",
    );
  }
  return snapshot.callerAgent?.status === "killed"
    ? refuse("agent_not_active", "This key's agent was killed; its keys can only read.")
    : null;
}

/** verifying → what the policy says, with the check's record, the money and the answer in one commit. */
function completeCheck(
  ctx: Context,
  begun: Warrant,
  sourceUrl: string,
  fetched: FetchedEvidence,
  evaluation: Evaluation,
  intent: Intent,
): Promise<Answer | Refusal> {
  const ids = {
    checkId: ctx.newId("check"),
    escalationId: ctx.newId("escalation"),
    eventId: ctx.newId("event"),
  };
  const now = ctx.now();
  return ctx.store.execute<Answer>({
    scope: begun,
    needs: { idempotencyKey: intent.key, warrantId: begun.id, organisation: true },
    decide: (snapshot) => {
      if (snapshot.warrant?.version !== begun.version) {
        // The lease ran out and recovery put the warrant back: this check decides nothing any more.
        return {
          answer: refuse("version_conflict", "The check took too long and was interrupted. Verify again."),
        };
      }
      const decided = decideWarrant(snapshot, snapshot.warrant, evaluation);
      const check = checkOf(begun.id, ids.checkId, sourceUrl, fetched, evaluation, decided);
      const moved = moveByCheck(snapshot, check, decided.decision, { ...ids, now });
      if (isRefusal(moved)) return { answer: moved };
      const { answer, idempotency } = recordAnswer(intent, 200, warrantResource(moved.warrant), now);
      return { answer, change: { ...moved.change, idempotency } };
    },
  });
}

/** What a check leads to, and the codes that its record shows. */
export type Decided = { readonly decision: PolicyDecision; readonly reasonCodes: readonly ReasonCode[] };

/** The record of a check. */
export const checkOf = (
  warrantId: string,
  id: string,
  sourceUrl: string,
  fetched: FetchedEvidence,
  evaluation: Evaluation,
  { decision, reasonCodes }: Decided,
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
});

/**
 * The policy's decision, and what stands above it: a killed agent pays nobody, no share is nothing, and above the passkey
 * threshold a person signs.
 */
export function decideWarrant(
  snapshot: Snapshot,
  warrant: Warrant,
  { score, reasonCodes }: Evaluation,
): Decided {
  if (warrant.policyId !== (snapshot.policy?.id ?? null)) throw new Error("the pinned policy is missing");
  const decision = decideOutcome(snapshot.policy?.rules ?? BUILT_IN_RULES, score, reasonCodes);
  const escalateWith = (code: ReasonCode) => ({
    decision: { outcome: "escalate", releasedBps: 0, bandLabel: decision.bandLabel } as const,
    reasonCodes: [...reasonCodes, code],
  });
  if (decision.releasedBps === 0) return { decision, reasonCodes };
  if (snapshot.agent?.status === "killed") return escalateWith("agent_killed");
  if (shareOf(warrant.amount, decision.releasedBps) === 0n) return escalateWith("share_too_small");
  if (isAboveThreshold(snapshot.organisation?.passkeyThreshold ?? null, warrant)) {
    return escalateWith("passkey_required");
  }
  return { decision, reasonCodes };
}

/** verifying → what was decided, with the check's record and, where a person is to decide, the escalation. */
export function moveByCheck(
  snapshot: Snapshot,
  check: Check,
  decision: PolicyDecision,
  at: {
    readonly escalationId: string;
    readonly eventId: string;
    readonly now: number;
    /** After the move, where the check is of what was bought. */
    readonly purchase?: Purchase;
    /** Whether our own end cut off what is checked: then it is nobody's failure. */
    readonly isCutOff?: boolean;
  },
): Moved | Refusal {
  const rows: Row[] = [{ kind: "check", row: check }];
  if (decision.outcome === "escalate" && snapshot.warrant) {
    rows.push({
      kind: "escalation",
      row: {
        id: at.escalationId,
        organisationId: snapshot.warrant.organisationId,
        mode: snapshot.warrant.mode,
        warrantId: check.warrantId,
        checkId: check.id,
        score: check.score,
        reasonCodes: check.reasonCodes,
        status: "open",
        decision: null,
        releasedBps: null,
        note: null,
        raisedBy: null,
        resolvedBy: null,
        createdAt: at.now,
        resolvedAt: null,
      },
    });
  }
  const settles = decision.outcome !== "escalate";
  return moveWarrant(
    snapshot,
    {
      to: STATE_OF[decision.outcome],
      by: "system",
      ...(decision.outcome === "partial_release" && { releasedBps: decision.releasedBps }),
    },
    {
      actor: SYSTEM,
      eventId: at.eventId,
      now: at.now,
      verdict: at.isCutOff ? "neither" : !check.passed ? "failed" : settles ? "clean" : "neither",
      rows,
      checked: {
        check_id: check.id,
        score: check.score,
        reason_codes: check.reasonCodes,
        evidence_hash: check.evidenceHash,
        check_hash: checkHashOf(check),
      },
      ...(at.purchase && { purchase: at.purchase }),
    },
  );
}
