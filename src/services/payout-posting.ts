import type { Payout } from "../core/payout.ts";
import type { Legs, PostingKind } from "../core/postings.ts";
import type { Put } from "../store/change.ts";

/** The posting of a payout's move, on the payout's rail. */
export const payoutPosting = (
  { organisationId, mode, asset, payee, rail, id: causeId }: Payout,
  kind: PostingKind,
  legs: Legs,
  recordedAt: number,
): Put => ({
  kind: "posting",
  row: { organisationId, mode, asset, legs, kind, causeId, payee, rail, recordedAt },
});
