import { sha256 } from "../../core/canonical.ts";
import type { AttemptCounter, Attempts } from "../../store/shared-memory.ts";

/** The failures of one account or network in its window. */
export type Counter = {
  readonly key: string;
  failures: number;
  /** Tries that found no place to wait. They are no failures, but whoever keeps trying makes room for others. */
  turnedAway: number;
  /** Tries that may still fail. */
  inFlight: number;
  /** Tries with other instances that may still fail. */
  elsewhere: number;
  endsAt: number;
  /** Tries that wait for another one to end, in the order of their arrival. */
  waiting: (() => void)[];
};

/** How many failures are too many, and in what time from the first try on. */
export type FailureRule = { readonly max: number; readonly windowMs: number };

/**
 * Where there is no room for a counter of its own, a key shares one of 4,096, by so many digits of a hash that strangers
 * cannot know: to use up the one of somebody else, they would have to use up all.
 */
const SHARED_DIGITS = 3;

/**
 * Counters of one kind, in process memory. None that counts is ever dropped for a new one. Of instances that share a ledger each has
 * those that it was asked for, with what all of them have counted.
 */
export class FailureCounters {
  /** In the order in which their windows end, but for a clock that jumped. */
  private readonly counters = new Map<string, Counter>();

  /**
   * @param kind by what instances tell these counters from others
   * @param ownMax how many keys have a counter of their own
   * @param secret what strangers do not know
   */
  constructor(
    private readonly kind: string,
    private readonly rule: FailureRule,
    private readonly ownMax: number,
    private readonly secret: string,
  ) {}

  /** The counter of a key. It is kept from its first try on, for as long as there is something to count. */
  of(key: string, now: number): Counter {
    const own = this.counters.get(key);
    if (own) return this.inWindow(own, now);
    this.forgetEnded(now);
    if (this.counters.size < this.ownMax) return this.fresh(key, now);
    const shared = `shared ${sha256(`${this.secret} ${key}`).slice(0, SHARED_DIGITS)}`;
    const counter = this.counters.get(shared);
    return counter ? this.inWindow(counter, now) : this.fresh(shared, now);
  }

  isSpent = ({ failures }: Counter): boolean => failures >= this.rule.max;

  /** Whether the tries that are under way could reach the limit. */
  isFull = ({ failures, inFlight, elsewhere }: Counter): boolean =>
    failures + inFlight + elsewhere >= this.rule.max;

  /** Under what instances know a counter. */
  sharedAs = ({ key }: Counter): AttemptCounter => ({
    key: `${this.kind} ${key}`,
    windowMs: this.rule.windowMs,
  });

  /** Takes over what all instances have counted. */
  hear(counter: Counter, attempts: Attempts, now: number): void {
    const heard = attempts.get(this.sharedAs(counter).key);
    counter.failures = heard?.failures ?? 0;
    counter.elsewhere = Math.max(0, (heard?.underWay ?? 0) - counter.inFlight);
    if (!heard) return;
    counter.endsAt = now + heard.endsInMs;
    this.counters.set(counter.key, counter);
  }

  get max(): number {
    return this.rule.max;
  }

  begin(counter: Counter): void {
    this.counters.set(counter.key, counter);
    counter.inFlight += 1;
  }

  end(counter: Counter, failed: boolean): void {
    counter.inFlight -= 1;
    if (failed) counter.failures += 1;
    this.forgetEmpty(counter);
    wake(counter);
  }

  turnAway(counter: Counter): void {
    this.counters.set(counter.key, counter);
    counter.turnedAway += 1;
  }

  forgive(key: string, now: number): void {
    const counter = this.of(key, now);
    if (counter.key !== key) return;
    counter.failures = 0;
    this.forgetEmpty(counter);
    wake(counter);
  }

  private fresh(key: string, now: number): Counter {
    const counted = { failures: 0, turnedAway: 0, inFlight: 0, elsewhere: 0 };
    return { key, ...counted, endsAt: now + this.rule.windowMs, waiting: [] };
  }

  private inWindow(counter: Counter, now: number): Counter {
    if (!this.hasEnded(counter, now)) return counter;
    counter.failures = 0;
    counter.turnedAway = 0;
    counter.endsAt = now + this.rule.windowMs;
    // It is the last one to end now.
    this.counters.delete(counter.key);
    this.counters.set(counter.key, counter);
    return counter;
  }

  /** A window that is further ahead than it is long was begun by a clock that was wrong. */
  private hasEnded({ endsAt }: Counter, now: number): boolean {
    return endsAt <= now || endsAt > now + this.rule.windowMs;
  }

  private forgetEnded(now: number): void {
    for (const counter of this.counters.values()) {
      if (!this.hasEnded(counter, now) || counter.inFlight > 0) break;
      this.counters.delete(counter.key);
    }
  }

  private forgetEmpty(counter: Counter): void {
    const isEmpty = counter.failures === 0 && counter.turnedAway === 0 && counter.inFlight === 0;
    if (isEmpty && this.counters.get(counter.key) === counter) this.counters.delete(counter.key);
  }
}

/** Lets the tries that wait at a counter look again. */
function wake(counter: Counter): void {
  const { waiting } = counter;
  counter.waiting = [];
  for (const go of waiting) go();
}
