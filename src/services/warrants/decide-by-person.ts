import { hashSecret } from "../../core/api-key.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import type { Escalation, Decision as PersonDecision } from "../../core/escalation.ts";
import { refuseInChat } from "../../core/messaging.ts";
import { planOfDispute } from "../../core/notice.ts";
import type { SignedDecision } from "../../core/passkey.ts";
import {
  type Access,
  actorOf,
  type Caller,
  type ChatCaller,
  type PersonCaller,
  roleIsAtLeast,
} from "../../core/roles.ts";
import { type Mover, refuseOtherVersion, STATE_OF, type Warrant } from "../../core/warrant.ts";
import { escalationResource } from "../../resources/escalation.ts";
import type { Put } from "../../store/change.ts";
import type { Complete, From, Needs, Snapshot } from "../../store/needs.ts";
import type { Decision } from "../../store/store.ts";
import { useApproval } from "../auth/passkeys/use-approval.ts";
import type { Context } from "../context.ts";
import {
  type Answer,
  executeKeyed,
  finish,
  type Idempotency,
  type KeyedCommand,
  type KeyedNeeds,
} from "../idempotency.ts";
import { MOVING, moveWarrant, OF_WARRANT } from "../transition.ts";

/** A person's decision on a warrant, made directly or by resolving its escalation. */
export type PersonInput = {
  readonly decision: PersonDecision;
  /** With `partial_release`: an integer strictly between 0 and 10000. */
  readonly releasedBps: number | null;
  readonly note: string | null;
  readonly ifMatch: number | null;
  /** The token of a passkey's signature over this decision, where one was sent. */
  readonly passkeyToken?: string | null;
};

/** A person at the console or by the API, or in the chat that they have linked. */
type Decider = PersonCaller | ChatCaller;

/** The warrant that the person decides, by its own id or as that of an escalation. */
type Decided = { readonly warrant: string | From<"escalationOrWarrant"> };

/** The warrant or escalation that the person decides, and who may do that. */
type Target<N extends Needs & Decided> = {
  readonly access: Access;
  readonly needs: N & Complete<N>;
  /** Null where the warrant or escalation exists, else the refusal with 404. */
  readonly refuseMissing: (found: TargetSnapshot<N>) => Refusal | null;
  /** Why it was decided already; null where it was not. */
  readonly refuseDecided: (found: TargetSnapshot<N>) => Refusal | null;
  readonly resource: (warrant: Warrant, escalation: Escalation | null) => object;
};

const personNeeds = ({ userId }: Decider, { decision, passkeyToken = null }: PersonInput) => ({
  ...MOVING,
  warrantEscalation: OF_WARRANT,
  escalationPlan: decision === "dispute" ? ({ from: "warrantEscalation" } as const) : null,
  passkeyApproval: passkeyToken === null ? null : hashSecret(passkeyToken),
  passkeys: userId,
  hasSecondPerson: userId,
});
type PersonNeeds = ReturnType<typeof personNeeds>;
type PersonSnapshot = Snapshot<PersonNeeds & Decided>;
type TargetSnapshot<N extends Needs> = Snapshot<N & PersonNeeds & KeyedNeeds>;

/**
 * A person's decision. In one commit the warrant and the money move, and an open escalation is closed, or
 * passed up by `dispute`. A second person, from admin up, decides a dispute.
 */
export function decideByPerson<N extends Needs & Decided>(
  ctx: Context,
  caller: Caller | ChatCaller,
  target: Target<N>,
  input: PersonInput,
  idempotency: Idempotency,
): Promise<Answer | Refusal> {
  const eventId = ctx.newId("event");
  const auditEntryId = ctx.newId("auditEntry");
  if (caller.kind === "key") throw new Error("an API key decides nothing");
  return executeKeyed<N & PersonNeeds, Decider>(ctx.store, {
    caller,
    access: target.access,
    idempotency,
    // Each part is complete, but the compiler cannot tell that of both together: N is not known here.
    needs: {
      ...target.needs,
      ...personNeeds(caller, input),
    } satisfies N & PersonNeeds as KeyedCommand<N & PersonNeeds, Decider, Answer>["needs"],
    refuseBody: null,
    decide(found, { now, caller: person, key }): Decision<Answer> {
      const missing = target.refuseMissing(found);
      if (missing) return { answer: missing };
      const snapshot: PersonSnapshot = found;
      const { warrant, warrantEscalation: waiting } = snapshot;
      if (!warrant) throw new Error("a target without a warrant");
      const other = refuseOtherVersion(warrant, input.ifMatch) ?? target.refuseDecided(found);
      if (other) return { answer: other };
      const closed = waiting && escalationAfter(waiting, person.userId, input, now);
      const moved = moveWarrant(
        snapshot,
        {
          to: STATE_OF[input.decision],
          by: moverOf(warrant),
          ...(input.releasedBps !== null && { releasedBps: input.releasedBps }),
        },
        {
          actor: actorOf(person),
          eventId,
          now,
          puts: closed ? closing(snapshot, closed, now) : [],
        },
      );
      if (isRefusal(moved)) return { answer: moved };
      const second = refuseFirstPerson(snapshot, warrant, person, input.decision);
      if (second) return { answer: second };
      const inChat = person.kind === "chat" ? refuseInChat(snapshot.organisation, warrant) : null;
      if (inChat) return { answer: inChat };
      // A dispute settles nothing, so it needs no signature.
      const settled = input.decision === "dispute" ? [] : [warrant];
      const used = useApproval(snapshot, signedBy(person, warrant, input), settled, now);
      if (isRefusal(used)) return { answer: used };
      return finish(key, 200, { resource: target.resource(moved.warrant, closed), contentHash: null }, [
        ...moved.change.put,
        ...used,
        ...(person.kind === "chat" && waiting && closed
          ? [decidedInChat(auditEntryId, person, { waiting, closed }, snapshot.recordedAt)]
          : []),
      ]);
    },
  });
}

const signedBy = (
  { userId }: Decider,
  { id: subject, version }: Warrant,
  { decision, releasedBps }: PersonInput,
): SignedDecision => ({ userId, subject, version, decision, releasedBps });

/** What closing or disputing an escalation writes. Of a dispute people are to hear anew. */
const closing = (
  { warrantEscalation: before, escalationPlan }: PersonSnapshot,
  closed: Escalation,
  now: number,
): readonly Put[] => [
  { kind: "escalation", before, row: closed },
  ...(closed.status === "disputed"
    ? [{ kind: "plannedNotice", before: escalationPlan, row: planOfDispute(closed, now) } as const]
    : []),
];

/** The trace has who decided; the audit log also has that it was in a chat. */
const decidedInChat = (
  id: string,
  { userId, organisationId }: ChatCaller,
  { waiting, closed }: { readonly waiting: Escalation; readonly closed: Escalation },
  recordedAt: number,
): Put => ({
  kind: "auditEntry",
  row: {
    ...{ id, organisationId, recordedAt, actor: { kind: "user", id: userId } },
    ...{ action: "escalation.resolved_in_chat", subject: closed.id },
    ...{ before: escalationResource(waiting), after: escalationResource(closed) },
  },
});

const moverOf = (warrant: Warrant): Mover => (warrant.state === "disputed" ? "second" : "operator");

/**
 * The person who raised a dispute may not decide it, nor may anybody below admin. Where no second person
 * exists, no dispute can be raised.
 */
function refuseFirstPerson(
  { hasSecondPerson, warrantEscalation }: PersonSnapshot,
  warrant: Warrant,
  { role, userId }: Decider,
  decision: PersonDecision,
): Refusal | null {
  if (decision === "dispute" && !hasSecondPerson) {
    return refuse(
      "second_person_required",
      "Nobody else in the organisation could decide a dispute: it needs an admin or owner besides you.",
    );
  }
  if (warrant.state !== "disputed") return null;
  if (!roleIsAtLeast(role, "admin")) {
    return refuse("insufficient_role", `A dispute needs the role admin or above; yours is ${role}.`);
  }
  return warrantEscalation?.raisedBy === userId
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
