import type { Refusal } from "../../../core/errors.ts";
import type { Organisation } from "../../../core/organisation.ts";
import {
  isAboveThreshold,
  type Passkey,
  type PasskeyApproval,
  type Priced,
  refuseUnsigned,
  type SignedDecision,
} from "../../../core/passkey.ts";
import type { Put } from "../../../store/change.ts";

/** The passkeys that count for the threshold. */
export const countingOf = (passkeys: readonly Passkey[]): readonly Passkey[] =>
  passkeys.filter(({ countsForThreshold }) => countsForThreshold);

/** What decides whether a decision is signed. */
type Signatures = {
  readonly organisation: Organisation;
  readonly passkeyApproval: PasskeyApproval | null;
  /**
   * The person's passkeys as they are now. A removed passkey signs nothing, not even by an approval that it
   * signed before.
   */
  readonly passkeys: readonly Passkey[];
};

/**
 * Checks that a decision above the organisation's threshold is signed, and marks the approval as used in the
 * same commit. Nothing is written where no signature is needed. Refused with `passkey_unavailable` or
 * `passkey_required`.
 *
 * @param moved what is decided about, in each asset; what moves nothing needs no signature
 * @param whatever why it is signed whatever the threshold is, as what is said of it; null where the threshold decides
 */
export function useApproval(
  { organisation: { passkeyThreshold: threshold }, passkeyApproval: approval, passkeys }: Signatures,
  decided: SignedDecision,
  moved: readonly Priced[],
  now: number,
  whatever: string | null = null,
): readonly Put[] | Refusal {
  const isAbove = moved.some((priced) => isAboveThreshold(threshold, priced));
  const why = whatever ?? (isAbove ? `is above the passkey threshold ${threshold}` : null);
  if (why === null) return [];
  const passkeyIds = countingOf(passkeys).map(({ id }) => id);
  const unsigned = refuseUnsigned(why, decided, { approval, passkeyIds }, now);
  if (unsigned) return unsigned;
  return approval ? [{ kind: "passkeyApproval", before: approval, row: { ...approval, usedAt: now } }] : [];
}
