import { timingSafeEqual } from "node:crypto";
import { hashSecret } from "../../core/api-key.ts";
import { isRefusal, type Refusal, refusedUnshared } from "../../core/errors.ts";
import { MINUTE_MS } from "../../core/time.ts";
import type { SharedMemory } from "../../store/shared-memory.ts";

/** What the holder of a link may do, once: make the first organisation, or sign in as somebody. */
type StartLink = {
  readonly kind: "set-up" | "sign-in";
  /** Who signs in by it; null for a link that makes the first organisation. */
  readonly userId: string | null;
};
type Kept = StartLink & { readonly tokenHash: string; readonly endsAt: number };

/** How long a link is good for. */
const LIFETIME_MS = 30 * MINUTE_MS;
/** How many instances may start at the same time. */
const STARTS_MAX = 64;

/** The links that a start prints where only the machine's operator reads them. There is one of each kind at most. */
export type StartLinks = {
  /** Makes a link that this instance takes. A newer one voids the one before. */
  add(link: StartLink, token: string): void;
  /** Makes a link that every instance takes. False, and there is none, where another instance has made one that is still good. */
  offer(link: StartLink, token: string): Promise<boolean>;
  /**
   * Uses a link up for some work. Where the work is refused or fails, the link stays good. Null where no link of the kind has
   * the token: it is unknown, used, being used, or out of date.
   */
  use<Answer>(
    kind: StartLink["kind"],
    token: string,
    work: (link: StartLink) => Promise<Answer | Refusal>,
  ): Promise<Answer | Refusal | null>;
};

/**
 * In the memory of this process alone, by the hash of their tokens, so that a new start voids them.
 *
 * @param steadyNow milliseconds of a clock that never jumps
 */
export function createStartLinks(steadyNow: () => number): StartLinks {
  const kept = new Map<StartLink["kind"], Kept>();
  function add(link: StartLink, token: string): void {
    kept.set(link.kind, { ...link, tokenHash: hashSecret(token), endsAt: steadyNow() + LIFETIME_MS });
  }
  return {
    add,
    async offer(link, token) {
      add(link, token);
      return true;
    },
    async use(kind, token, work) {
      const link = kept.get(kind);
      if (!link || link.endsAt <= steadyNow() || !isSame(link.tokenHash, hashSecret(token))) return null;
      kept.delete(kind);
      return unlessDone(
        () => work(link),
        () => void (kept.has(kind) || kept.set(kind, link)),
      );
    },
  };
}

/** For instances that share a ledger. A link that was offered outlives their starts. */
export function createSharedStartLinks(
  shared: Pick<SharedMemory, "useOnce" | "keep" | "take">,
  own: StartLinks,
): StartLinks {
  const tokenOf = (kind: StartLink["kind"], token: string): string => `${kind} link ${token}`;
  const keep = (kind: StartLink["kind"], token: string, value: string, ms: number): Promise<void> =>
    shared.keep({ token: tokenOf(kind, token), value, owner: `${kind} links`, most: STARTS_MAX }, ms);
  return {
    add: own.add,
    async offer({ kind, userId }, token) {
      // Kept first: a start that fails in between has printed no link, and must not keep the next one from it.
      await keep(kind, token, JSON.stringify(userId), LIFETIME_MS);
      if (await shared.useOnce(`${kind} link`, LIFETIME_MS)) return true;
      await shared.take(tokenOf(kind, token));
      return false;
    },
    async use(kind, token, work) {
      const used = await own.use(kind, token, work);
      if (used !== null) return used;
      const taken = await shared.take(tokenOf(kind, token)).catch(refusedUnshared);
      if (taken === null || isRefusal(taken)) return taken;
      const { value, msLeft } = taken;
      return unlessDone(
        () => work({ kind, userId: JSON.parse(value) }),
        () => keep(kind, token, value, msLeft).catch((error) => void refusedUnshared(error)),
      );
    },
  };
}

/** Does some work. Where it is refused or fails, what was used for it is put back. */
async function unlessDone<Answer>(
  work: () => Promise<Answer | Refusal>,
  putBack: () => void | Promise<void>,
): Promise<Answer | Refusal> {
  let answer: Answer | Refusal | null = null;
  try {
    answer = await work();
    return answer;
  } finally {
    if (answer === null || isRefusal(answer)) await putBack();
  }
}

/** Hashes are compared, in constant time. */
const isSame = (one: string, other: string): boolean => timingSafeEqual(Buffer.from(one), Buffer.from(other));
