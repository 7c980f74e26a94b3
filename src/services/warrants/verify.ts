import { type Agent, isKilled, isStopped } from "../../core/agent.ts";
import { isRefusal, type Refusal, refuse, UndoneFault } from "../../core/errors.ts";
import { isId } from "../../core/ids.ts";
import { ACCESS, actorOf, type Caller, refuseAccess } from "../../core/roles.ts";
import { allowsSource, refuseSource } from "../../core/session-limits.ts";
import { refuseOtherVersion, type Warrant, warrantNotFound } from "../../core/warrant.ts";
import type { Decision } from "../../store/store.ts";
import { keepCapsule, packBody } from "../checks/capsule.ts";
import { evaluateEvidence } from "../checks/evaluate.ts";
import {
  type Checked,
  checkOf,
  DECIDING,
  decideCheck,
  moveOfCheck,
  newOutcomeIds,
  type OutcomeIds,
} from "../checks/outcome.ts";
import { signatureOf } from "../checks/signer.ts";
import type { Context } from "../context.ts";
import { type Answer, claim, executeKeyed, finish, type Idempotency } from "../idempotency.ts";
import { inPlace, TOO_MANY_CHECKS } from "../in-place.ts";
import { refuseUnacknowledged } from "../instance.ts";
import { moveWarrant, movingNeeds, STOPPING } from "../transition.ts";
import { decideExpiry } from "./expire.ts";
import { interruptCheck } from "./interrupt.ts";

export type VerifyInput = {
  readonly warrantId: string;
  /** An http or https URL whose form was checked. Its address is checked when it is fetched. */
  readonly sourceUrl: string;
  /** The version that `If-Match` names, or null. */
  readonly ifMatch: number | null;
};

/**
 * Verifies a warrant: fetches the deliverable, evaluates every clause and lets the policy decide. The fetch
 * runs between two commands; where a crash comes between them, recovery undoes the first. Answers 200 with
 * the warrant after the decision.
 *
 * @param gone aborts where the caller has left: then it waits no more for a place
 * @throws UndoneFault where a fault decided nothing, the warrant is held again and the key is free
 */
export async function verifyWarrant(
  ctx: Context,
  caller: Caller,
  input: VerifyInput,
  idempotency: Idempotency,
  gone: AbortSignal | null = null,
): Promise<Answer | Refusal> {
  const refused = refuseAccess(caller, ACCESS.verifyWarrant);
  if (refused) return refused;
  return inPlace(ctx, caller, gone, async (hasPlace) => {
    const check = async () => {
      const begun = await beginCheck(ctx, caller, input, idempotency, hasPlace);
      return isRefusal(begun) || "replayed" in begun ? begun : runCheck(ctx, begun, input.sourceUrl);
    };
    const mayBegin = hasPlace && isId("warrant", input.warrantId);
    return mayBegin ? ctx.instances.owning(input.warrantId, check) : check();
  });
}

/** A document waited too long for a process that evaluates. How much memory it needs is known only once it is fetched. */
const EVALUATORS_BUSY: Refusal = refuse(
  "rate_limit_exceeded",
  "Too many documents are being evaluated. Nothing was decided, and the warrant is held again, two versions later. Retry shortly with the same Idempotency-Key.",
);

/** A check that has begun. */
type Begun = {
  readonly warrant: Warrant;
  /** The origins that the warrant's session allows, redirects' targets included; null where all. */
  readonly sourceOrigins: readonly string[] | null;
};

/** Fetches and evaluates, and completes a check that has begun. */
async function runCheck(
  ctx: Context,
  { warrant: begun, sourceOrigins }: Begun,
  sourceUrl: string,
): Promise<Answer | Refusal> {
  try {
    const owner = { party: begun.organisationId, live: begun.mode === "live" };
    const mayFollow = (target: URL) => sourceOrigins === null || allowsSource(sourceOrigins, target);
    const fetched = await ctx.fetchEvidence(sourceUrl, owner, mayFollow);
    const now = ctx.now();
    const asked = {
      party: begun,
      method: "GET",
      now,
      fetchBeside: async (url: string) => ctx.sigstore?.fetchBeside(fetched, url, owner, mayFollow) ?? null,
    } as const;
    const [{ evaluation, schemas }, body, signature] = await Promise.all([
      evaluateEvidence(ctx, begun, fetched.evidence, now),
      packBody(ctx, fetched.evidence),
      signatureOf(ctx, asked, fetched),
    ]);
    const ids = newOutcomeIds(ctx);
    const of = { id: ids.checkId, warrantId: begun.id, sourceUrl, evaluation, signature };
    const seen = { ...of, ...fetched, method: asked.method, schemas };
    const capsuleHash = await keepCapsule(ctx, begun, seen, body);
    return await completeCheck(ctx, begun, ids, { ...of, fetched, capsuleHash });
  } catch (error) {
    // An unexpected fault decides nothing: the warrant is held again and the key is free.
    const isUndone = await interruptCheck(ctx, begun);
    if (isRefusal(error)) return EVALUATORS_BUSY;
    if (isUndone !== true) throw error;
    throw new UndoneFault("The check could not be made, and nothing was decided: the warrant is held.", {
      cause: error,
    });
  }
}

/**
 * held → verifying, and claims the key. A warrant past its deadline expires instead, and the verify is
 * refused. Without a place no check begins. A replay and every other refusal still come first.
 */
function beginCheck(
  ctx: Context,
  caller: Caller,
  input: VerifyInput,
  idempotency: Idempotency,
  hasPlace: boolean,
): Promise<Begun | Answer | Refusal> {
  const eventId = ctx.newId("event");
  return executeKeyed(ctx.store, {
    caller,
    access: ACCESS.verifyWarrant,
    idempotency,
    needs: { ...movingNeeds(input.warrantId), ...STOPPING },
    refuseBody: null,
    decide: (snapshot, { now, caller: present, key }): Decision<Begun | Answer> => {
      const { warrant } = snapshot;
      if (!warrant) return { answer: warrantNotFound() };
      const other = refuseOtherVersion(warrant, input.ifMatch);
      if (other) return { answer: other };
      const moved = moveWarrant(
        snapshot,
        { to: "verifying", by: "caller" },
        { actor: actorOf(present), eventId, now },
      );
      if (isRefusal(moved)) return { answer: moved };
      if (isStopped(snapshot)) {
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
      // Else it would be fetched and evaluated, and could not settle.
      const standsStill = refuseUnacknowledged(snapshot.instance, warrant.mode);
      if (standsStill) return { answer: standsStill };
      const foreign = refuseForeignKey(snapshot.callerAgent, present, warrant);
      if (foreign) return { answer: foreign };
      const { warrantSession } = snapshot;
      const elsewhere = warrantSession && refuseSource(warrantSession, input.sourceUrl);
      if (elsewhere) return { answer: elsewhere };
      if (!hasPlace) return { answer: TOO_MANY_CHECKS };
      return {
        answer: { warrant: moved.warrant, sourceOrigins: warrantSession?.sourceOrigins ?? null },
        change: { put: [...moved.change.put, claim(key, warrant.id)] },
      };
    },
  });
}

/**
 * Refuses the keys of a killed agent, which may only read. A warrant of an agent can be verified by that
 * agent's keys and by people.
 */
function refuseForeignKey(callerAgent: Agent | null, caller: Caller, warrant: Warrant): Refusal | null {
  if (caller.kind !== "key") return null;
  if (warrant.agentId !== null && warrant.agentId !== caller.agentId) {
    return refuse(
      "agent_key_mismatch",
      "This warrant belongs to another agent; its own key or a person can verify it.",
    );
  }
  return isKilled(callerAgent)
    ? refuse("agent_not_active", "This key's agent was killed; its keys can only read.")
    : null;
}

/** verifying → what the policy decides, with the check's record, the money and the answer in one commit. */
function completeCheck(
  ctx: Context,
  begun: Warrant,
  ids: OutcomeIds,
  checked: Checked,
): Promise<Answer | Refusal> {
  return ctx.store.execute({
    scope: begun,
    needs: { ...movingNeeds(begun.id), ...DECIDING, heldKey: begun.id },
    decide: (snapshot, now): Decision<Answer> => {
      const { warrant, heldKey } = snapshot;
      if (warrant?.version !== begun.version || !heldKey) {
        // The lease has run out and recovery has undone this check, so it decides nothing.
        return {
          answer: refuse("version_conflict", "The check took too long and was interrupted. Verify again."),
        };
      }
      const outcome = decideCheck(snapshot, warrant, checked.evaluation);
      const check = checkOf(checked, outcome);
      const { move, details } = moveOfCheck(warrant, check, outcome.decision, ids, now, false);
      const moved = moveWarrant(snapshot, move, details);
      return isRefusal(moved)
        ? { answer: moved }
        : finish(heldKey, 200, { warrant: moved.warrant }, moved.change.put);
    },
  });
}
