import { Type } from "@sinclair/typebox";
import { reasonCodesForm } from "../core/clauses/form.ts";
import { DECISIONS, ESCALATION_STATUSES, type Escalation } from "../core/escalation.ts";
import { form, is, object, oneOf, orNull, score, share, text, time, type Wire } from "../core/form.ts";
import { isoTime, isoTimeOrNull } from "../core/time.ts";
import type { Warrant } from "../core/warrant.ts";
import { closed, literals, plainText, releasedBps } from "./input.ts";
import { readBackForm } from "./list.ts";
import { warrantForm, warrantResource } from "./warrant.ts";

/** An escalation, and the answer to a person's decision on it. */

const escalationForm = form("Escalation", () =>
  object({
    id: text,
    object: is("escalation"),
    warrant_id: text,
    check_id: orNull(text),
    score: orNull(score),
    reason_codes: reasonCodesForm(),
    status: oneOf(ESCALATION_STATUSES),
    decision: orNull(oneOf(DECISIONS)),
    released_bps: share,
    note: orNull(text),
    raised_by: orNull(text),
    resolved_by: orNull(text),
    created_at: time,
    resolved_at: orNull(time),
  }),
);

export const escalationResource = (escalation: Escalation): Wire<typeof escalationForm> => ({
  id: escalation.id,
  object: "escalation",
  warrant_id: escalation.warrantId,
  check_id: escalation.checkId,
  score: escalation.score,
  reason_codes: escalation.reasonCodes,
  status: escalation.status,
  decision: escalation.decision,
  released_bps: escalation.releasedBps,
  note: escalation.note,
  raised_by: escalation.raisedBy,
  resolved_by: escalation.resolvedBy,
  created_at: isoTime(escalation.createdAt),
  resolved_at: isoTimeOrNull(escalation.resolvedAt),
});

export const escalationListForm = form("EscalationList", () => readBackForm(escalationForm(), {}));

export const resolvedEscalationForm = form("ResolvedEscalation", () =>
  object({ ...escalationForm().properties, warrant: warrantForm() }),
);

export const resolvedEscalationResource = (
  escalation: Escalation,
  warrant: Warrant,
): Wire<typeof resolvedEscalationForm> => ({
  ...escalationResource(escalation),
  warrant: warrantResource(warrant),
});

export const resolveBody = Type.Object(
  {
    decision: literals(DECISIONS),
    released_bps: Type.Optional(releasedBps),
    note: Type.Optional(plainText({ lengthMax: 2_000, description: "a string of at most 2000 characters" })),
  },
  closed,
);
