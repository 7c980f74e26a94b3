import { hashSecret } from "../../core/api-key.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import type { Escalation, Decision as PersonDecision } from "../../core/escalation.ts";
import { type Access, actorOf, type Caller, type PersonCaller, roleIsAtLeast } from "../../core/roles.ts";
import { type Mover, STATE_OF, type Warrant } from "../../core/warrant.ts";
import type { Decision, Snapshot } from "../../store/store.ts";
import { useApproval } from "../auth/passkeys/use-approval.ts";
import type { Context } from "../context.ts";
import {
  type Answer,
  asOfNow,
  type Intent,
  needsOf,
  recordAnswer,
  refuseEndedCaller,
  refuseUsedKey,
  replayOf,
} from "../intent.ts";
import { moveWarrant, refuseOtherVersion } from "./transition.ts";

/** What a person decided of a warrant, directly or by resolving its escalation. */
export type PersonInput = {
  readonly decision: PersonDecision;
  /** With `partial_release`: an integer strictly between 0 and 10000. */
  readonly releasedBps: number | null;
  readonly note: string | null;
  readonly ifMatch: number | null;
  /** The token of a passkey's signature over this decision, where one was sent. */
  readonly passkeyToken?: string | null;
};

type Target = {
  readonly access: Access;
  readonly needs: { readonly warrantId: string } | { readonly escalationId: string };
  /** Null where what the request names is there; else its 404. */
  readonly refuseMissing: (snapshot: Snapshot) => Refusal | null;
  /** Why what is there is decided already; null where it is not. */
  readonly refuseDecided: (snapshot: Snapshot) => Refusal | null;
  readonly resource: (warrant: Warrant, escalation: Escalation | null) => Parameters<typeof recordAnswer>[2];
};

/**
 * A person's decision: the warrant moves, the money with it, and an escalation that waited for it is closed (or passed up,
 * by `dispute`) in the same commit. Above all a dispute needs a second person from admin up.
 */
export function decideByPerson(
  ctx: Context,
  caller: Caller,
  target: Target,
  input: PersonInput,
  intent: Intent,
): Promise<Answer | Refusal> {
  const eventId = ctx.newId("event");
  const now = ctx.now();
  if (caller.kind !== "person") throw new Error("an API key decides nothing");
  return ctx.store.execute<Answer>({
    scope: caller,
    needs: {
      ...target.needs,
      ...needsOf(caller, intent),
      organisation: true,
      ...(input.passkeyToken && { approvalHash: hashSecret(input.passkeyToken) }),
      passkeysOf: caller.userId,
      secondPersonThan: caller.userId,
    },
    decide: (snapshot): Decision<Answer> => {
      const ended = refuseEndedCaller(caller, target.access, snapshot, now);
      if (ended) return { answer: ended };
      const replay = replayOf(snapshot.idempotency, intent);
      if (replay) return { answer: replay };
      const first = refuseUsedKey(snapshot.idempotency, intent) ?? target.refuseMissing(snapshot);
      if (first) return { answer: first };
      const { warrant, escalation } = snapshot;
      if (!warrant) throw new Error("a target without a warrant");
      const other = refuseOtherVersion(warrant, input.ifMatch) ?? target.refuseDecided(snapshot);
      if (other) return { answer: other };
      const waiting = escalation?.status === "resolved" ? null : escalation;
      const closed = waiting && escalationAfter(waiting, caller.userId, input, now);
      const moved = moveWarrant(
        snapshot,
        {
          to: STATE_OF[input.decision],
          by: moverOf(warrant),
          ...(input.releasedBps !== null && { releasedBps: input.releasedBps }),
        },
        {
          actor: actorOf(caller),
          eventId,
          now,
          rows: closed ? [{ kind: "escalation", row: closed }] : [],
        },
      );
      if (isRefusal(moved)) return { answer: moved };
      const second = refuseFirstPerson(snapshot, warrant, caller, input.decision);
      if (second) return { answer: second };
      const used = useApproval(snapshot, input, caller.userId, now);
      if (isRefusal(used)) return { answer: used };
      const { answer, idempotency } = recordAnswer(intent, 200, target.resource(moved.warrant, closed), now);
      const rows = [...(moved.change.rows ?? []), ...used];
      return { answer, change: { ...moved.change, rows, idempotency } };
    },
  });
}

const moverOf = (warrant: Warrant): Mover => (warrant.state === "disputed" ? "second" : "operator");

/** A dispute is decided by a second, more senior person; it is not raised where there is none. */
function refuseFirstPerson(
  snapshot: Snapshot,
  warrant: Warrant,
  caller: PersonCaller,
  decision: PersonDecision,
): Refusal | null {
  if (decision === "dispute" && !snapshot.hasSecondPerson) {
    return refuse(
      "second_person_required",
      "Nobody else in the organisation could decide a dispute: it needs an admin or owner besides you.",
    );
  }
  if (warrant.state !== "disputed") return null;
  const { role } = asOfNow(caller, snapshot);
  if (!roleIsAtLeast(role, "admin")) {
    return refuse("insufficient_role", `A dispute needs the role admin or above; yours is ${role}.`);
  }
  return snapshot.escalation?.raisedBy === caller.userId
    ? refuse("second_person_required", "You raised this dispute; a second person decides it.")
    : null;
}

function escalationAfter(
  escalation: Escalation,
  personId: string,
  input: PersonInput,
  now: number,
): Escalation {
  const note = input.note ?? escalation.note;
  if (input.decision === "dispute") return { ...escalation, status: "disputed", raisedBy: personId, note };
  return {
    ...escalation,
    status: "resolved",
    decision: input.decision,
    releasedBps: input.releasedBps,
    note,
    resolvedBy: personId,
    resolvedAt: now,
  };
}
