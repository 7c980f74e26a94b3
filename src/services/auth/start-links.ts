import { timingSafeEqual } from "node:crypto";
import { hashSecret } from "../../core/api-key.ts";
import { isRefusal, type Refusal } from "../../core/errors.ts";
import { MINUTE_MS } from "../../core/time.ts";

/** What the holder of a link may do, once: make the first organisation, or sign in as somebody. */
type StartLink = {
  readonly kind: "set-up" | "sign-in";
  /** Who signs in by it; null for a link that makes the first organisation. */
  readonly userId: string | null;
};
type Kept = StartLink & { readonly tokenHash: string; readonly endsAt: number };

/** How long a link is good for. */
const LIFETIME_MS = 30 * MINUTE_MS;

/**
 * The links that a start prints where only the machine's operator reads them. They are in the memory of this process alone, by
 * the hash of their tokens, so that a new start voids them. There is one of each kind at most: a newer one voids the one before.
 */
export type StartLinks = {
  add(link: StartLink, token: string): void;
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

/** @param steadyNow milliseconds of a clock that never jumps */
export function createStartLinks(steadyNow: () => number): StartLinks {
  const kept = new Map<StartLink["kind"], Kept>();
  return {
    add(link, token) {
      kept.set(link.kind, { ...link, tokenHash: hashSecret(token), endsAt: steadyNow() + LIFETIME_MS });
    },
    async use(kind, token, work) {
      const link = kept.get(kind);
      if (!link || link.endsAt <= steadyNow() || !isSame(link.tokenHash, hashSecret(token))) return null;
      kept.delete(kind);
      let answer: Awaited<ReturnType<typeof work>> | null = null;
      try {
        answer = await work(link);
        return answer;
      } finally {
        if ((answer === null || isRefusal(answer)) && !kept.has(kind)) kept.set(kind, link);
      }
    },
  };
}

/** Hashes are compared, in constant time. */
const isSame = (one: string, other: string): boolean => timingSafeEqual(Buffer.from(one), Buffer.from(other));
