import {
  BUCKETS,
  type Bucket,
  type Budget,
  budgetOf,
  type ExchangeCounts,
  type RateLimits,
  windowOf,
} from "../core/rate.ts";
import { type Counted, createRateCounters, type RateCounters } from "./limits.ts";

/** Counters of instances that share a ledger: each adds what the others have told it. */
export type SharedRateCounters = RateCounters & {
  /**
   * Tells the others of callers, and hears of theirs. Where it rejects the counters go on by themselves, and the next time tells what
   * this one did not. Twice a second: what is counted is then told within half of one, and heard within the other.
   */
  exchange(ask: ExchangeCounts, now: number): Promise<void>;
};

/**
 * A caller with a small part of its limit is not told of. What all instances so leave out of one caller is less than this part, so it
 * gets at most its limit, this part, and what it can send through the other instances in a second.
 */
const UNTOLD_PART = 1 / 8;
/** Of how many callers of each kind others are told in a window, so that strangers fill nothing, and the sandbox nothing of live. */
const TOLD_MAX = { live: 2_000, sandbox: 1_000, address: 1_000 } as const;
type Kind = keyof typeof TOLD_MAX;

/** What is known of callers in a window, by bucket and caller. */
const newState = (window: number) => ({
  window,
  /** Of whom others are told, and how many requests they know of. */
  told: { live: new Set<string>(), sandbox: new Set<string>(), address: new Set<string>() },
  known: new Map<string, number>(),
  /** What is told next. */
  due: new Map<string, number>(),
  others: new Map() as ReadonlyMap<string, number>,
});

/** @param toldMax of how many callers of each kind others are told in a window */
export function createSharedRateCounters(
  limits: RateLimits,
  toldMax: Readonly<Record<Kind, number>> = TOLD_MAX,
): SharedRateCounters {
  const own = createRateCounters(limits);
  let state = newState(-1);
  // Until it is known how many there are.
  let instances = 2;

  function stateAt(now: number) {
    const window = windowOf(now);
    if (window !== state.window) state = newState(window);
    return state;
  }

  function tell(name: string, used: number): void {
    if (used > (state.known.get(name) ?? 0)) state.due.set(name, used);
  }

  /** Whether others are told of a caller although they have not told of it. */
  function isToldOf(name: string, kind: Kind, used: number, limit: number): boolean {
    if (used <= (limit * UNTOLD_PART) / instances) return false;
    const told = state.told[kind];
    return told.size < toldMax[kind] ? told.add(name).has(name) : told.has(name);
  }

  return {
    take(bucket, caller, now) {
      const used = usedOf(own.take(bucket, caller, now));
      const name = nameOf(bucket, caller);
      const limit = limits[bucket];
      const others = stateAt(now).others.get(name) ?? 0;
      if (isToldOf(name, kindOf(caller), used, limit)) tell(name, used);
      return budgetOf(limit, used + others, now);
    },
    peek(bucket, caller, now) {
      const used = usedOf(own.peek(bucket, caller, now));
      return budgetOf(limits[bucket], used + (stateAt(now).others.get(nameOf(bucket, caller)) ?? 0), now);
    },
    async exchange(ask, now) {
      const current = stateAt(now);
      const telling = [...current.due];
      const heard = await ask(
        current.window,
        telling.map(([caller, used]) => ({ caller, used })),
      );
      instances = Math.max(2, heard.instances);
      if (current !== state) return;
      for (const [name, used] of telling) {
        current.known.set(name, used);
        if (current.due.get(name) === used) current.due.delete(name);
      }
      current.others = heard.used;
      // They hear how much of it came here, however little that is.
      for (const name of heard.used.keys()) {
        const [bucket, caller] = namedBy(name);
        tell(name, usedOf(own.peek(bucket, caller, now)));
      }
    },
  };
}

/** How many requests were counted; one more than the limit where more than that. */
const usedOf = ({ limit, remaining, exceeded }: Budget): number => limit - remaining + (exceeded ? 1 : 0);

const kindOf = ({ kind, live }: Counted): Kind =>
  kind === "address" ? "address" : live ? "live" : "sandbox";

const nameOf = (bucket: Bucket, { kind, id }: Counted): string => `${bucket} ${kind} ${id}`;

/** What a name was made of. */
function namedBy(name: string): readonly [Bucket, Counted] {
  const [, bucket = "", kind = "", id = ""] = /^(\w+) (account|address) (.*)$/s.exec(name) ?? [];
  const known = BUCKETS.find((one) => one === bucket);
  if (!known) throw new Error(`no caller has the name ${name}`);
  return [known, { kind: kind === "account" ? "account" : "address", id }];
}
