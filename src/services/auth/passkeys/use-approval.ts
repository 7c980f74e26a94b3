import type { Passkey } from "../../../core/directory.ts";
import type { Refusal } from "../../../core/errors.ts";
import { isAboveThreshold, refuseUnsigned, type SignedDecision } from "../../../core/passkey.ts";
import type { Row, Snapshot } from "../../../store/store.ts";
import type { Context } from "../../context.ts";

/** A person's passkeys that may sign above the threshold. */
export const countingPasskeysOf = (ctx: Context, userId: string): readonly Passkey[] =>
  ctx.store.reader.passkeys.of(userId).filter(({ countsForThreshold }) => countsForThreshold);

/**
 * The signature that a decision needs above the organisation's threshold, as the rows that use it up with the settlement:
 * none where none is needed. Refused with `passkey_unavailable` or `passkey_required`.
 */
export function useApproval(
  { organisation, warrant, approval }: Snapshot,
  { decision, releasedBps }: Pick<SignedDecision, "decision" | "releasedBps">,
  passkeys: readonly Passkey[],
  userId: string,
  now: number,
): readonly Row[] | Refusal {
  if (!organisation || !warrant) throw new Error("a decision without its organisation or warrant");
  const { passkeyThreshold: threshold } = organisation;
  const decided = { userId, warrantId: warrant.id, version: warrant.version, decision, releasedBps };
  const passkeyIds = passkeys.map(({ id }) => id);
  const unsigned = refuseUnsigned(threshold, warrant, decided, { approval, passkeyIds }, now);
  if (unsigned) return unsigned;
  const isUsed = decision !== "dispute" && isAboveThreshold(threshold, warrant);
  return approval && isUsed ? [{ kind: "passkeyApproval", row: { ...approval, usedAt: now } }] : [];
}
