import type { Refusal } from "../../../core/errors.ts";
import type { Passkey } from "../../../core/passkey.ts";
import { isAboveThreshold, refuseUnsigned, type SignedDecision } from "../../../core/passkey.ts";
import type { Row, Snapshot } from "../../../store/store.ts";

/** Of a person's passkeys, those that may sign above the threshold. */
export const countingOf = (passkeys: readonly Passkey[]): readonly Passkey[] =>
  passkeys.filter(({ countsForThreshold }) => countsForThreshold);

/**
 * The signature that a decision needs above the organisation's threshold, as the rows that use it up with the settlement:
 * none where none is needed. The snapshot has the person's passkeys: one that was removed signs nothing, even what it
 * signed before. Refused with `passkey_unavailable` or `passkey_required`.
 */
export function useApproval(
  { organisation, warrant, approval, passkeys }: Snapshot,
  { decision, releasedBps }: Pick<SignedDecision, "decision" | "releasedBps">,
  userId: string,
  now: number,
): readonly Row[] | Refusal {
  if (!organisation || !warrant) throw new Error("a decision without its organisation or warrant");
  const { passkeyThreshold: threshold } = organisation;
  const decided = { userId, warrantId: warrant.id, version: warrant.version, decision, releasedBps };
  const passkeyIds = countingOf(passkeys).map(({ id }) => id);
  const unsigned = refuseUnsigned(threshold, warrant, decided, { approval, passkeyIds }, now);
  if (unsigned) return unsigned;
  const isUsed = decision !== "dispute" && isAboveThreshold(threshold, warrant);
  return approval && isUsed ? [{ kind: "passkeyApproval", row: { ...approval, usedAt: now } }] : [];
}
