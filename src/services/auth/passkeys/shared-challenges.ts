import { timingSafeEqual } from "node:crypto";
import { refusedUnshared } from "../../../core/errors.ts";
import { PASSKEY_TTL_MS } from "../../../core/passkey.ts";
import { SECOND_MS } from "../../../core/time.ts";
import type { Vault } from "../../../platform/vault.ts";
import type { SharedMemory } from "../../../store/shared-memory.ts";
import { type Ceremony, OF_PERSON_MAX, type PendingChallenges } from "./challenges.ts";

/** By how much the clocks of two instances may differ. */
const CLOCKS_DIFFER_MS = 5 * SECOND_MS;
/** A challenge that was used is remembered for longer than any instance would take it. */
const USED_MS = PASSKEY_TTL_MS + 60 * SECOND_MS;
const NAME = "passkey sign-in";

/**
 * Challenges that any of the instances may be answered that share a ledger. Those of signed-in people are rows. A stranger writes
 * nothing: the challenge of a sign-in says itself when it was issued, with a MAC under the master key, and it becomes a row once
 * somebody has signed in with it.
 */
export function createSharedChallenges(
  shared: Pick<SharedMemory, "keep" | "take" | "useOnce">,
  { mac }: Pick<Vault, "mac">,
): PendingChallenges {
  const macOf = (said: string): string => mac(said, NAME).toString("base64url");
  return {
    add: (challenge, asker, ceremony) =>
      shared
        .keep(
          {
            token: tokenOf(challenge),
            value: JSON.stringify(ceremony),
            owner: `challenges of ${asker.kind} ${asker.id}`,
            most: OF_PERSON_MAX,
          },
          PASSKEY_TTL_MS,
        )
        .then(() => null, refusedUnshared),
    forSignIn(nonce, _, now) {
      const said = `${now}.${nonce}`;
      return Buffer.from(`${said}.${macOf(said)}`).toString("base64url");
    },
    take(challenge, now) {
      const issuedAt = issuedAtOf(challenge, macOf);
      if (issuedAt === null)
        return shared
          .take(tokenOf(challenge))
          .then((kept) => kept && (JSON.parse(kept.value) as Ceremony), refusedUnshared);
      const age = now - issuedAt;
      return age >= -CLOCKS_DIFFER_MS && age < PASSKEY_TTL_MS ? { kind: "signIn" } : null;
    },
    useForSignIn: (challenge) => shared.useOnce(tokenOf(challenge), USED_MS).catch(refusedUnshared),
  };
}

const tokenOf = (challenge: string): string => `passkey challenge ${challenge}`;

/** When the challenge of a sign-in was issued; null where no instance has made it. */
function issuedAtOf(challenge: string, macOf: (said: string) => string): number | null {
  const text = Buffer.from(challenge, "base64url").toString();
  const [, said = "", at, mac = ""] = /^((\d{1,15})\.[\w-]+)\.([\w-]+)$/.exec(text) ?? [];
  if (at === undefined) return null;
  const [expected, found] = [Buffer.from(macOf(said)), Buffer.from(mac)];
  return expected.length === found.length && timingSafeEqual(expected, found) ? Number(at) : null;
}
