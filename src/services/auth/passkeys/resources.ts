import { type Refusal, refuse } from "../../../core/errors.ts";
import type { Passkey } from "../../../core/passkey.ts";
import { isoTime, isoTimeOrNull } from "../../../core/time.ts";

/** A passkey as its owner sees it. */
export const passkeyResource = (passkey: Passkey) => ({
  object: "passkey" as const,
  id: passkey.id,
  name: passkey.name,
  counts_for_threshold: passkey.countsForThreshold,
  created_at: isoTime(passkey.createdAt),
  last_used_at: isoTimeOrNull(passkey.lastUsedAt),
});

/** How a browser is told of passkeys that exist: `PublicKeyCredentialDescriptorJSON`. */
export const descriptorOf = ({ id, transports }: Passkey) => ({
  type: "public-key" as const,
  id,
  transports,
});

/** What is asked of a browser to have something signed: `PublicKeyCredentialRequestOptionsJSON`. */
export const requestOptions = (
  rpId: string,
  challenge: string,
  timeoutMs: number,
  passkeys: readonly Passkey[] = [],
) => ({
  challenge,
  rpId,
  timeout: timeoutMs,
  userVerification: "required" as const,
  allowCredentials: passkeys.map(descriptorOf),
});
export type RequestOptions = ReturnType<typeof requestOptions>;

export const passkeyNotFound = (): Refusal =>
  refuse("passkey_not_found", "There is no such passkey among yours.");

/** The answer to a challenge that was not given out, has expired, or was answered before. */
export const challengeGone = (): Refusal =>
  refuse(
    "validation_failed",
    "response: answers no challenge that waits for it; a challenge is good for one answer within 120 seconds. Begin again.",
  );
