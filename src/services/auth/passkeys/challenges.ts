import { sha256 } from "../../../core/canonical.ts";
import { PASSKEY_TTL_MS, type SignedDecision, type Statement } from "../../../core/passkey.ts";

/** What a challenge was issued for. */
export type Ceremony =
  | { readonly kind: "registration"; readonly userId: string }
  | { readonly kind: "signIn" }
  | { readonly kind: "decision"; readonly signed: SignedDecision; readonly statement: Statement };

/**
 * Who asked: a signed-in person, or a stranger's address. They are counted apart, so that a flood of
 * strangers does not push out the challenges of people.
 */
export type Asker = { readonly kind: "person" | "address"; readonly id: string };

/** Challenges that wait for their answer, in process memory. Each is good for 120 s and for one answer. */
export type PendingChallenges = {
  add(challenge: string, asker: Asker, ceremony: Ceremony, now: number): void;
  /**
   * What the challenge was issued for; null where it was never issued, has expired, or was answered before.
   */
  take(challenge: string, now: number): Ceremony | null;
};

const OF_PERSON_MAX = 10;
const OF_ADDRESS_MAX = 100;
/** How many challenges of each kind of asker may wait. Beyond that the oldest is dropped. */
const CHALLENGES_MAX = 100_000;

type Pending = { readonly asker: Asker; readonly ceremony: Ceremony; readonly expiresAt: number };

/** `challengesMax` caps what is kept in memory. */
export function createPendingChallenges(challengesMax = CHALLENGES_MAX): PendingChallenges {
  // A challenge is kept by its hash. Maps keep the order of insertion, which is that of expiry.
  const pending = { person: new Map<string, Pending>(), address: new Map<string, Pending>() };
  const ofAsker = new Map<string, Set<string>>();
  const keyOf = ({ kind, id }: Asker): string => `${kind} ${id}`;

  function drop(hash: string, { asker }: Pending): void {
    pending[asker.kind].delete(hash);
    const own = ofAsker.get(keyOf(asker));
    own?.delete(hash);
    if (own?.size === 0) ofAsker.delete(keyOf(asker));
  }

  function dropOldest(hashes: Iterable<string>, challenges: Map<string, Pending>): void {
    const [hash] = hashes;
    const oldest = hash === undefined ? undefined : challenges.get(hash);
    if (hash !== undefined && oldest) drop(hash, oldest);
  }

  function makeRoom(asker: Asker, now: number): void {
    const challenges = pending[asker.kind];
    for (const [hash, challenge] of challenges) {
      if (challenge.expiresAt > now) break;
      drop(hash, challenge);
    }
    const own = ofAsker.get(keyOf(asker));
    const ownMax = asker.kind === "person" ? OF_PERSON_MAX : OF_ADDRESS_MAX;
    if (own && own.size >= ownMax) dropOldest(own, challenges);
    else if (challenges.size >= challengesMax) dropOldest(challenges.keys(), challenges);
  }

  return {
    add(challenge, asker, ceremony, now) {
      makeRoom(asker, now);
      const hash = sha256(challenge);
      pending[asker.kind].set(hash, { asker, ceremony, expiresAt: now + PASSKEY_TTL_MS });
      ofAsker.set(keyOf(asker), (ofAsker.get(keyOf(asker)) ?? new Set()).add(hash));
    },
    take(challenge, now) {
      const hash = sha256(challenge);
      const found = pending.person.get(hash) ?? pending.address.get(hash);
      if (!found) return null;
      drop(hash, found);
      return found.expiresAt > now ? found.ceremony : null;
    },
  };
}

/** A challenge, and what it was issued for. */
export type Answered = { readonly challenge: string; readonly ceremony: Ceremony };

/**
 * Takes the challenge that an answer names, so that no second answer can use it; null where it does not wait.
 * The signature is verified later.
 */
export function takeAnswered(
  pending: PendingChallenges,
  clientDataJSON: string,
  now: number,
): Answered | null {
  const challenge = challengeIn(clientDataJSON);
  const ceremony = challenge === null ? null : pending.take(challenge, now);
  return challenge !== null && ceremony ? { challenge, ceremony } : null;
}

function challengeIn(clientDataJSON: string): string | null {
  try {
    const clientData: unknown = JSON.parse(Buffer.from(clientDataJSON, "base64url").toString());
    const { challenge } = clientData as { readonly challenge?: unknown };
    return typeof challenge === "string" ? challenge : null;
  } catch {
    return null;
  }
}
