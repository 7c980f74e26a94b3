import { refuse } from "../../core/errors.ts";
import { MINUTE_MS } from "../../core/time.ts";

/** Failed sign-ins in a quarter of an hour: so many for one e-mail from one address, so many for an address. */
const WINDOW_MS = 15 * MINUTE_MS;
export const FAILURES_OF_PAIR_MAX = 10;
const FAILURES_OF_ADDRESS_MAX = 100;
/** Counters in a window. Beyond them all newcomers share one, with an address's limit: refused rather than uncounted. */
const COUNTERS_MAX = 200_000;
const OVERFLOW = "*";

export const TOO_MANY_SIGN_INS = refuse(
  "rate_limit_exceeded",
  "Too many failed sign-ins. Wait a quarter of an hour.",
);

/** Counts failed sign-ins in process memory (decisions.md, Sign-in, roles, passkeys). */
export type SignInThrottle = {
  /** Whether one more attempt may be made. It counts as failed until `forget` says otherwise, so that many at once count too. */
  admit(email: string, address: string, now: number): boolean;
  /** Seconds until the counts start anew. */
  resetSeconds(now: number): number;
  /** The attempt did not fail. */
  forget(email: string, address: string, now: number): void;
};

type Counter = { readonly key: string; readonly max: number };

/** `countersMax` caps what is kept in memory. */
export function createSignInThrottle(countersMax = COUNTERS_MAX): SignInThrottle {
  let window = -1;
  let failures = new Map<string, number>();

  /** The counters of an attempt, each with its limit. */
  function countersOf(email: string, address: string, now: number): readonly Counter[] {
    const current = Math.floor(now / WINDOW_MS);
    if (current !== window) {
      window = current;
      failures = new Map();
    }
    const own: readonly Counter[] = [
      { key: JSON.stringify([address, email]), max: FAILURES_OF_PAIR_MAX },
      { key: address, max: FAILURES_OF_ADDRESS_MAX },
    ];
    const known = own.filter(({ key }) => failures.has(key));
    const news = own.length - known.length;
    if (news === 0 || failures.size + news <= countersMax) return own;
    return [...known, { key: OVERFLOW, max: FAILURES_OF_ADDRESS_MAX }];
  }

  const failuresOf = (key: string): number => failures.get(key) ?? 0;

  return {
    admit(email, address, now) {
      const counters = countersOf(email, address, now);
      if (counters.some(({ key, max }) => failuresOf(key) >= max)) return false;
      for (const { key } of counters) failures.set(key, failuresOf(key) + 1);
      return true;
    },
    resetSeconds: (now) => Math.ceil((WINDOW_MS - (now % WINDOW_MS)) / 1_000),
    forget(email, address, now) {
      for (const { key } of countersOf(email, address, now)) {
        failures.set(key, Math.max(0, failuresOf(key) - 1));
      }
    },
  };
}
