import { CORRECTION_STATUSES, type Correction } from "../core/correction.ts";
import { amount, form, is, object, oneOf, orNull, text, time, type Wire } from "../core/form.ts";
import { MODES } from "../core/roles.ts";
import { isoTime } from "../core/time.ts";

const correctionForm = form("Correction", () =>
  object({
    id: text,
    object: is("correction"),
    organisation_id: text,
    mode: oneOf(MODES),
    asset: text,
    deposit_id: text,
    amount_before: amount,
    amount_after: amount,
    reason: text,
    status: oneOf(CORRECTION_STATUSES),
    /** Null: the operator of the machine. */
    proposed_by: orNull(text),
    decided_by: orNull(text),
    created_at: time,
    decided_at: orNull(time),
  }),
);
export type CorrectionResource = Wire<typeof correctionForm>;

export const correctionResource = (correction: Correction): CorrectionResource => ({
  id: correction.id,
  object: "correction",
  organisation_id: correction.organisationId,
  mode: correction.mode,
  asset: correction.asset,
  deposit_id: correction.depositId,
  amount_before: correction.amountBefore.toString(),
  amount_after: correction.amountAfter.toString(),
  reason: correction.reason,
  status: correction.status,
  proposed_by: correction.proposedBy,
  decided_by: correction.decidedBy,
  created_at: isoTime(correction.createdAt),
  decided_at: correction.decidedAt === null ? null : isoTime(correction.decidedAt),
});
