import { sha256 } from "../../../core/canonical.ts";
import { isRefusal, type Refusal } from "../../../core/errors.ts";
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

/** Challenges that wait for their answer. Each is good for 120 s and for one answer. */
export type PendingChallenges = {
  /** Refused where other instances have to know of it and cannot be told. */
  add(challenge: string, asker: Asker, ceremony: Ceremony, now: number): Added | Promise<Added>;
  /** The challenge for a sign-in that a stranger begins. @param nonce random, and used for nothing else */
  forSignIn(nonce: string, address: string, now: number): string;
  /**
   * What the challenge was issued for; null where it was never issued, has expired, or was answered before.
   */
  take(challenge: string, now: number): Taken | Promise<Taken>;
  /** Whether the challenge of a sign-in, which was taken and whose answer was verified, was answered by nobody else. */
  useForSignIn(challenge: string): boolean | Promise<boolean | Refusal>;
};
type Added = Refusal | null;
type Taken = Ceremony | Refusal | null;

export const OF_PERSON_MAX = 10;
const OF_ADDRESS_MAX = 100;
/** How many challenges of each kind of asker may wait. Beyond that the oldest is dropped. */
const CHALLENGES_MAX = 100_000;

type Pending = { readonly asker: Asker; readonly ceremony: Ceremony; readonly expiresAt: number };

/** In process memory. `challengesMax` caps what is kept. */
export function createPendingChallenges(challengesMax = CHALLENGES_MAX) {
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

  function add(challenge: string, asker: Asker, ceremony: Ceremony, now: number): null {
    makeRoom(asker, now);
    const hash = sha256(challenge);
    pending[asker.kind].set(hash, { asker, ceremony, expiresAt: now + PASSKEY_TTL_MS });
    ofAsker.set(keyOf(asker), (ofAsker.get(keyOf(asker)) ?? new Set()).add(hash));
    return null;
  }

  return {
    add,
    forSignIn(nonce: string, address: string, now: number): string {
      add(nonce, { kind: "address", id: address }, { kind: "signIn" }, now);
      return nonce;
    },
    take(challenge: string, now: number): Ceremony | null {
      const hash = sha256(challenge);
      const found = pending.person.get(hash) ?? pending.address.get(hash);
      if (!found) return null;
      drop(hash, found);
      return found.expiresAt > now ? found.ceremony : null;
    },
    useForSignIn: () => true,
  } satisfies PendingChallenges;
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
): Answered | Refusal | null | Promise<Answered | Refusal | null> {
  const challenge = challengeIn(clientDataJSON);
  if (challenge === null) return null;
  const taken = pending.take(challenge, now);
  const answered = (ceremony: Taken): Answered | Refusal | null =>
    ceremony === null || isRefusal(ceremony) ? ceremony : { challenge, ceremony };
  return taken instanceof Promise ? taken.then(answered) : answered(taken);
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
