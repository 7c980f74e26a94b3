import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import { MINUTE_MS } from "../../core/time.ts";

/**
 * Limits of failed sign-ins in a quarter of an hour: for one e-mail from one address, and for one address.
 */
const WINDOW_MS = 15 * MINUTE_MS;
export const FAILURES_OF_PAIR_MAX = 10;
const FAILURES_OF_ADDRESS_MAX = 100;
/**
 * How many counters a window has. All later callers share one counter with the limit of an address: some may
 * be refused too early, but nobody is left uncounted.
 */
const COUNTERS_MAX = 200_000;
const OVERFLOW = "*";
/** How many attempts may wait at one counter. The next one is refused. */
const WAITING_MAX = 100;

const TOO_MANY_SIGN_INS = refuse(
  "rate_limit_exceeded",
  "Too many failed sign-ins. Wait a quarter of an hour.",
);

/** Ends an attempt. A second call does nothing. */
type End = (failed: boolean) => void;

/** Counts failed sign-ins in process memory. */
export type SignInThrottle = {
  /**
   * Begins an attempt; null where too many have failed. Attempts that are under way may still fail. Where
   * they could reach a limit, this one waits until some of them have ended.
   */
  begin(email: string, address: string, now: () => number): Promise<End | null>;
  /** Forgets the failures of the e-mail from the address. */
  forgive(email: string, address: string, now: number): void;
  /** Seconds until the counts start anew. */
  resetSeconds(now: number): number;
};

type Counter = {
  readonly key: string;
  readonly max: number;
  failures: number;
  inFlight: number;
  /** Attempts that wait for another one to end, in the order of their arrival. */
  waiting: (() => void)[];
};

/** `countersMax` caps what is kept in memory. */
export function createSignInThrottle(countersMax = COUNTERS_MAX): SignInThrottle {
  let window = -1;
  let counters = new Map<string, Counter>();

  function enterWindow(now: number): void {
    const current = Math.floor(now / WINDOW_MS);
    if (current === window) return;
    window = current;
    counters = new Map();
  }

  /** The counter of a key. A new counter is stored with its first attempt. */
  const counterOf = (key: string, max: number): Counter =>
    counters.get(key) ?? { key, max, failures: 0, inFlight: 0, waiting: [] };

  function countersOf(email: string, address: string): readonly Counter[] {
    const own = [
      counterOf(pairKey(email, address), FAILURES_OF_PAIR_MAX),
      counterOf(address, FAILURES_OF_ADDRESS_MAX),
    ];
    const known = own.filter(({ key }) => counters.has(key));
    const news = own.length - known.length;
    if (news === 0 || counters.size + news <= countersMax) return own;
    return [...known, counterOf(OVERFLOW, FAILURES_OF_ADDRESS_MAX)];
  }

  function wake(counter: Counter): void {
    const { waiting } = counter;
    counter.waiting = [];
    for (const go of waiting) go();
  }

  function start(counter: Counter): void {
    counters.set(counter.key, counter);
    counter.inFlight += 1;
  }

  function end(counter: Counter, failed: boolean): void {
    counter.inFlight -= 1;
    if (failed) counter.failures += 1;
    const isEmpty = counter.failures === 0 && counter.inFlight === 0;
    if (isEmpty && counters.get(counter.key) === counter) counters.delete(counter.key);
    wake(counter);
  }

  return {
    async begin(email, address, now) {
      for (;;) {
        enterWindow(now());
        const own = countersOf(email, address);
        if (own.some(({ failures, max }) => failures >= max)) return null;
        const full = own.find(({ failures, inFlight, max }) => failures + inFlight >= max);
        if (!full) {
          for (const counter of own) start(counter);
          return (failed) => {
            for (const counter of own) end(counter, failed);
          };
        }
        if (full.waiting.length >= WAITING_MAX) return null;
        await new Promise<void>((go) => full.waiting.push(go));
      }
    },
    forgive(email, address, now) {
      enterWindow(now);
      const counter = counterOf(pairKey(email, address), FAILURES_OF_PAIR_MAX);
      counter.failures = 0;
      wake(counter);
    },
    resetSeconds: (now) => Math.ceil((WINDOW_MS - (now % WINDOW_MS)) / 1_000),
  };
}

const pairKey = (email: string, address: string): string => JSON.stringify([address, email]);

/**
 * Makes an attempt to sign in. It has failed where the answer is `not_authenticated`, or where the work
 * throws. After too many failures nothing is tried, and the answer is `rate_limit_exceeded`.
 */
export async function attemptSignIn<Answer>(
  { signInThrottle, now }: { readonly signInThrottle: SignInThrottle; readonly now: () => number },
  email: string,
  address: string,
  attempt: () => Promise<Answer | Refusal>,
): Promise<Answer | Refusal> {
  const end = await signInThrottle.begin(email, address, now);
  if (!end) return TOO_MANY_SIGN_INS;
  let failed = true;
  try {
    const answer = await attempt();
    failed = isRefusal(answer) && answer.refused === "not_authenticated";
    return answer;
  } finally {
    end(failed);
  }
}
