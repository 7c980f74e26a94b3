import type { Refusal } from "../../../core/errors.ts";
import type { Organisation } from "../../../core/organisation.ts";
import {
  isAboveThreshold,
  type Passkey,
  type PasskeyApproval,
  refuseUnsigned,
  type SignedDecision,
} from "../../../core/passkey.ts";
import type { Warrant } from "../../../core/warrant.ts";
import type { Put } from "../../../store/change.ts";

/** Of a person's passkeys, those that may sign above the threshold. */
export const countingOf = (passkeys: readonly Passkey[]): readonly Passkey[] =>
  passkeys.filter(({ countsForThreshold }) => countsForThreshold);

/** What tells whether a decision is signed. */
type Signatures = {
  readonly organisation: Organisation;
  readonly passkeyApproval: PasskeyApproval | null;
  /** The person's as they are now: a passkey that was removed signs nothing, even what it signed before. */
  readonly passkeys: readonly Passkey[];
};

/**
 * The signature that a decision needs above the organisation's threshold, as the row that uses it up with the settlement:
 * none where none is needed. Refused with `passkey_unavailable` or `passkey_required`.
 */
export function useApproval(
  { organisation: { passkeyThreshold: threshold }, passkeyApproval: approval, passkeys }: Signatures,
  warrant: Warrant,
  { decision, releasedBps }: Pick<SignedDecision, "decision" | "releasedBps">,
  userId: string,
  now: number,
): readonly Put[] | Refusal {
  const decided = { userId, warrantId: warrant.id, version: warrant.version, decision, releasedBps };
  const passkeyIds = countingOf(passkeys).map(({ id }) => id);
  const unsigned = refuseUnsigned(threshold, warrant, decided, { approval, passkeyIds }, now);
  if (unsigned) return unsigned;
  const isUsed = decision !== "dispute" && isAboveThreshold(threshold, warrant);
  return approval && isUsed
    ? [{ kind: "passkeyApproval", before: approval, row: { ...approval, usedAt: now } }]
    : [];
}
