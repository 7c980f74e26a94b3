import type { Refusal } from "../../core/errors.ts";
import { approvalOfCorrection, submissionOf } from "../../core/passkey.ts";
import { ACCESS, type Caller } from "../../core/roles.ts";
import type { RequestOptions } from "../../resources/passkey.ts";
import { challengeFor } from "../auth/passkeys/approve.ts";
import type { Context } from "../context.ts";
import { reaches } from "./authority.ts";
import { correctionNotFound, refuseDecided } from "./corrections.ts";
import { type Asked, readBatch, refuseOtherBatch } from "./payout-batch.ts";

/** What admins sign with a passkey above the threshold (docs/people, "The threshold"). */

/** Asks for a person's signature over the approval of a correction that waits. */
export const challengeCorrection = (
  ctx: Context,
  caller: Caller,
  { correction_id: id }: { readonly correction_id: string },
): Promise<RequestOptions | Refusal> =>
  challengeFor(ctx, caller, ACCESS.administer, async (reader, userId) => {
    const correction = await reader.corrections.get(id);
    if (!correction || !reaches(caller, correction)) return correctionNotFound(id);
    return refuseDecided(correction) ?? approvalOfCorrection(userId, id);
  });

/**
 * Asks for a person's signature over payouts. Refused with `version_conflict` where something else is owed than the batch that they
 * have seen.
 *
 * @param input the batch by its digest, and whose payouts it is
 */
export const challengePayouts = (
  ctx: Context,
  caller: Caller,
  { batch, ...asked }: Asked & { readonly batch: string },
): Promise<RequestOptions | Refusal> =>
  challengeFor(ctx, caller, ACCESS.administer, async (reader, userId) => {
    const { digest } = await readBatch(reader, caller, asked);
    return digest === batch ? submissionOf(userId, digest) : refuseOtherBatch();
  });
