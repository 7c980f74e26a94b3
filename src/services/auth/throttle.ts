import { widerNetworks } from "../../core/client.ts";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../core/time.ts";
import type { SharedAttempts } from "../../store/shared-memory.ts";
import { type Counter, FailureCounters, type FailureRule } from "./failure-counters.ts";
import { type Counted, type End, TRIES_ALONE, type Tries, triesOfAll } from "./tries.ts";
import { type After, type RoomLimits, WaitingRoom } from "./waiting-room.ts";

/** A try to show who one is. */
export type Tried = {
  /** Networks are counted apart for the two: who guesses passwords keeps nobody from signing in by passkey. */
  readonly by: "password" | "passkey";
  /** Whose secret is tried. Null where it cannot be guessed, as a signature or a one-time link. */
  readonly account: string | null;
  /** Whether strangers cannot be counted in this account, since it has a counter for those who are known. */
  readonly trusted: boolean;
  /** The client's network, as limits count it. */
  readonly network: string;
};

/** After this many failures of an account in an hour, from any address, each further try waits, each time longer. */
const ACCOUNT_RULE: FailureRule = { max: 10, windowMs: HOUR_MS };
const WAIT_MS_MAX = 30 * SECOND_MS;
/** After this many failures of a network, nothing more is tried for it. */
const NETWORK_RULES = {
  /** An IPv4 address, or an IPv6 /64. */
  own: { max: 100, windowMs: 15 * MINUTE_MS },
  of56: { max: 50, windowMs: HOUR_MS },
  of48: { max: 200, windowMs: HOUR_MS },
} as const satisfies Record<string, FailureRule>;
/** How many counters of each kind are kept apart: some 10 MB of each kind at most. */
const COUNTERS_MAX = 50_000;
/** How many tries may wait for others of the same counter to end. The next one is refused. */
const QUEUE_MAX = 100;

/** What the headers of a refusal say. */
export type FailureBudget = { readonly limit: number; readonly resetSeconds: number };

/**
 * Counts failures, in process memory, and with other instances in the memory that they share: then it rejects where that cannot be
 * reached. It knows no accounts, so one that does not exist is counted as all are.
 */
export type SignInThrottle<Ended = void> = {
  /**
   * Begins a try, after it has waited as long as it must; null where too many have failed or wait. Tries that are under way
   * may still fail: where they could reach a limit, this one waits until some of them have ended.
   */
  begin(tried: Tried, now: () => number): Promise<End<Ended> | null>;
  /** Forgets the failures of an account. */
  forgive(account: string, now: number): Ended;
  budgetOf(tried: Pick<Tried, "by" | "network">, now: number): FailureBudget;
  /** Lets no try wait any more. */
  close(): void;
};

export type ThrottleOptions = {
  readonly after: After;
  /** What strangers do not know. */
  readonly secret: string;
  /** How many counters of each kind are kept apart. */
  readonly countersMax?: number;
  readonly room?: RoomLimits;
};

/** The throttle of an instance that has its ledger for itself. */
export const createSignInThrottle = (options: ThrottleOptions): SignInThrottle =>
  createThrottle(options, TRIES_ALONE);

/** The throttle of one of the instances that share a ledger: each failure counts with all of them. */
export const createSharedSignInThrottle = (
  options: ThrottleOptions,
  shared: SharedAttempts,
): SignInThrottle<Promise<void>> => createThrottle(options, triesOfAll(shared, options.after));

function createThrottle<Ended>(options: ThrottleOptions, tries: Tries<Ended>): SignInThrottle<Ended> {
  const { after, secret, countersMax = COUNTERS_MAX } = options;
  const countersFor = (kind: string, rule: FailureRule) =>
    new FailureCounters(kind, rule, countersMax, secret);
  const networksOf = (by: Tried["by"]) => ({
    own: countersFor(`${by} network`, NETWORK_RULES.own),
    of56: countersFor(`${by} /56`, NETWORK_RULES.of56),
    of48: countersFor(`${by} /48`, NETWORK_RULES.of48),
  });
  const networks = { password: networksOf("password"), passkey: networksOf("passkey") };
  const accounts = countersFor("account", ACCOUNT_RULE);
  const room = new WaitingRoom(after, options.room);

  function countedNetworks({ by, network }: Pick<Tried, "by" | "network">, now: number): readonly Counted[] {
    const { own, of56, of48 } = networks[by];
    const wider = widerNetworks(network);
    const at = (counters: FailureCounters, key: string) => ({ counters, counter: counters.of(key, now) });
    return [at(own, network), ...(wider === null ? [] : [at(of56, wider.of56), at(of48, wider.of48)])];
  }

  /** Whether it waited; false where it found no place, or lost it. */
  async function waitIn(account: Counter, tried: Tried, around: readonly Counted[]): Promise<boolean> {
    const further = account.failures - ACCOUNT_RULE.max + room.countOf(account.key);
    const network = widerNetworks(tried.network)?.of48 ?? tried.network;
    const weight = tried.trusted ? -1 : Math.max(...around.map(weightOf));
    const ms = Math.min(SECOND_MS * 2 ** Math.min(further, 5), WAIT_MS_MAX);
    if (await room.wait({ account: account.key, network, weight }, ms)) return true;
    for (const { counters, counter } of around) counters.turnAway(counter);
    return false;
  }

  const countedAccount = ({ account }: Tried, now: number): readonly Counted[] =>
    account === null ? [] : [{ counters: accounts, counter: accounts.of(account, now) }];

  return {
    async begin(tried, now) {
      const allCounted = () => [...countedNetworks(tried, now()), ...countedAccount(tried, now())];
      for (let hasWaited = false; ; ) {
        const heard = tries.hear(allCounted, now);
        if (heard) await heard;
        const around = countedNetworks(tried, now());
        if (around.some(isSpent)) return null;
        const ofAccount = countedAccount(tried, now());
        const spent = ofAccount.find(isSpent);
        if (spent && !hasWaited) {
          if (!(await waitIn(spent.counter, tried, around))) return null;
          hasWaited = true;
          continue;
        }
        const counted = [...around, ...ofAccount];
        // Whoever has waited for the account goes on, whatever others do there meanwhile.
        const limiting = hasWaited ? around : counted;
        const full = limiting.find(isFull)?.counter;
        if (!full) {
          const started = tries.start(counted, limiting);
          const end = started instanceof Promise ? await started : started;
          if (end) return end;
          continue;
        }
        if (full.waiting.length >= QUEUE_MAX) return null;
        await tries.waitAt(full);
      }
    },
    forgive(account, now) {
      accounts.forgive(account, now);
      return tries.forgive({ counters: accounts, counter: accounts.of(account, now) });
    },
    budgetOf(tried, now) {
      const spent = countedNetworks(tried, now).filter(isSpent);
      if (spent.length === 0) return { limit: ACCOUNT_RULE.max, resetSeconds: 1 };
      const last = spent.reduce((a, b) => (a.counter.endsAt > b.counter.endsAt ? a : b));
      return {
        limit: last.counters.max,
        resetSeconds: Math.ceil((last.counter.endsAt - now) / SECOND_MS),
      };
    },
    close: () => room.close(),
  };
}

const weightOf = ({ counter: { failures, turnedAway } }: Counted): number => failures + turnedAway;
const isSpent = ({ counters, counter }: Counted): boolean => counters.isSpent(counter);
const isFull = ({ counters, counter }: Counted): boolean => counters.isFull(counter);
