import { MINUTE_MS } from "../../core/time.ts";

/** Failed sign-ins in a quarter of an hour: so many for one e-mail from one address, so many for an address. */
const WINDOW_MS = 15 * MINUTE_MS;
const FAILURES_OF_PAIR_MAX = 10;
const FAILURES_OF_ADDRESS_MAX = 100;

/** Counts failed sign-ins in process memory (decisions.md, Sign-in, roles, passkeys). */
export type SignInThrottle = {
  /** Whether one more attempt may be made. It counts as failed until `forget` says otherwise, so that many at once count too. */
  admit(email: string, address: string, now: number): boolean;
  /** The attempt did not fail. */
  forget(email: string, address: string, now: number): void;
};

export function createSignInThrottle(): SignInThrottle {
  let window = -1;
  let failures = new Map<string, number>();

  function failuresIn(now: number): Map<string, number> {
    const current = Math.floor(now / WINDOW_MS);
    if (current !== window) {
      window = current;
      failures = new Map();
    }
    return failures;
  }

  function count(email: string, address: string, now: number, by: 1 | -1): void {
    const counts = failuresIn(now);
    for (const key of [pairOf(email, address), address])
      counts.set(key, Math.max(0, (counts.get(key) ?? 0) + by));
  }

  const pairOf = (email: string, address: string) => JSON.stringify([address, email]);

  return {
    admit(email, address, now) {
      const counts = failuresIn(now);
      const exceeded =
        (counts.get(pairOf(email, address)) ?? 0) >= FAILURES_OF_PAIR_MAX ||
        (counts.get(address) ?? 0) >= FAILURES_OF_ADDRESS_MAX;
      if (!exceeded) count(email, address, now, 1);
      return !exceeded;
    },
    forget: (email, address, now) => count(email, address, now, -1),
  };
}
