import { type Refusal, refuse } from "../../../core/errors.ts";

export const passkeyNotFound = (): Refusal =>
  refuse("passkey_not_found", "There is no such passkey among yours.");

/** The refusal for a challenge that was never issued, has expired, or was answered before. */
export const challengeGone = (): Refusal =>
  refuse(
    "validation_failed",
    "response: answers no challenge that waits for it; a challenge is good for one answer within 120 seconds. Begin again.",
  );
