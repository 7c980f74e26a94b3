import { type Refusal, refuse, refuseField } from "../../core/errors.ts";
import type { Decision, Escalation } from "../../core/escalation.ts";
import { ACCESS, type Caller, type ChatCaller, refuseAccess } from "../../core/roles.ts";
import { resolvedEscalationResource } from "../../resources/escalation.ts";
import type { Context } from "../context.ts";
import type { Answer, Idempotency } from "../idempotency.ts";
import { decideByPerson } from "./decide-by-person.ts";

export type ResolveInput = {
  /** The escalation's id or its warrant's. */
  readonly id: string;
  readonly decision: Decision;
  readonly releasedBps: number | null;
  readonly note: string | null;
  readonly ifMatch: number | null;
  readonly passkeyToken?: string | null;
};

/**
 * A person's decision on an escalation. Answers 200 with the escalation and, in `warrant`, the warrant.
 * Refused with `illegal_transition` where the escalation was resolved before.
 */
export async function resolveEscalation(
  ctx: Context,
  caller: Caller | ChatCaller,
  { id, ...input }: ResolveInput,
  idempotency: Idempotency,
): Promise<Answer | Refusal> {
  const refused = refuseAccess(caller, ACCESS.resolveEscalation);
  if (refused) return refused;
  if ((input.decision === "partial_release") !== (input.releasedBps !== null)) {
    return refuseField("released_bps", "goes with the decision partial_release, and is required there");
  }
  return decideByPerson(
    ctx,
    caller,
    {
      access: ACCESS.resolveEscalation,
      needs: { escalationOrWarrant: id, warrant: { from: "escalationOrWarrant" } },
      refuseMissing: ({ escalationOrWarrant: escalation }) =>
        escalation ? null : refuse("escalation_not_found", "There is no such escalation."),
      refuseDecided: ({ escalationOrWarrant: escalation }) => refuseResolved(escalation),
      resource(warrant, escalation) {
        if (!escalation) throw new Error(`the escalation of ${warrant.id} is decided, and not there`);
        return resolvedEscalationResource(escalation, warrant);
      },
    },
    input,
    idempotency,
  );
}

/** A resolved escalation cannot be decided again, even where its warrant is held again. */
const refuseResolved = (escalation: Escalation | null): Refusal | null =>
  escalation?.status === "resolved"
    ? refuse("illegal_transition", `The escalation ${escalation.id} was resolved already.`)
    : null;
