import { refusedUnshared } from "../../core/errors.ts";
import { SECOND_MS } from "../../core/time.ts";
import type { AttemptCounter, SharedAttempts } from "../../store/shared-memory.ts";
import type { Counter, FailureCounters } from "./failure-counters.ts";
import type { After } from "./waiting-room.ts";

/** A counter, and the counters that it is one of. */
export type Counted = { readonly counters: FailureCounters; readonly counter: Counter };

/** Ends a try. */
export type End<Ended> = (failed: boolean) => Ended;

/** How tries begin and end: in this process alone, or with all instances that share a ledger. */
export type Tries<Ended> = {
  /** Takes over what others have counted; null where there are none. */
  hear(counted: () => readonly Counted[], now: () => number): Promise<void> | null;
  /**
   * Begins a try. Null, and nothing is begun, where too many tries of others began meanwhile.
   *
   * @param limiting those of the counters that may be too full
   */
  start(counted: readonly Counted[], limiting: readonly Counted[]): End<Ended> | Promise<End<Ended> | null>;
  /** Waits until a try may have ended at a full counter. */
  waitAt(full: Counter): Promise<void>;
  forgive(counted: Counted): Ended;
};

export const TRIES_ALONE: Tries<void> = {
  hear: () => null,
  start,
  waitAt: (full) => new Promise((go) => full.waiting.push(go)),
  forgive() {},
};

/** When a try that waits for others looks whether any has ended with another instance. */
const LOOK_AGAIN_MS = SECOND_MS / 10;

/** Each function rejects where the other instances cannot be told. */
export const triesOfAll = (shared: SharedAttempts, after: After): Tries<Promise<void>> => ({
  async hear(counted, now) {
    const attempts = await shared.read(counted().map((one) => sharedAs(one).key));
    // Others of this process may have begun meanwhile, and have made the counters.
    for (const { counters, counter } of counted()) counters.hear(counter, attempts, now());
  },
  async start(counted, limiting) {
    const end = start(counted);
    let isBegun = false;
    try {
      const begun = counted.map(sharedAs);
      const attempts = await shared.begin(begun);
      isBegun = limiting.every((one) => {
        const { failures = 0, underWay = 0 } = attempts.get(sharedAs(one).key) ?? {};
        return failures + underWay <= one.counters.max;
      });
      if (!isBegun) await shared.end(begun, false);
      return isBegun ? endsWithAll(end, shared, begun) : null;
    } finally {
      if (!isBegun) end(false);
    }
  },
  waitAt(full) {
    const { promise, resolve: go } = Promise.withResolvers<void>();
    full.waiting.push(go);
    const timer = after(LOOK_AGAIN_MS, () => {
      full.waiting = full.waiting.filter((waiting) => waiting !== go);
      go();
    });
    return promise.finally(timer.cancel);
  },
  // Where it cannot be written, the failures count until their hour is over.
  forgive: (counted) => shared.forgive(sharedAs(counted).key).catch((error) => void refusedUnshared(error)),
});

const sharedAs = ({ counters, counter }: Counted): AttemptCounter => counters.sharedAs(counter);

function start(counted: readonly Counted[]): End<void> {
  for (const { counters, counter } of counted) counters.begin(counter);
  return (failed) => {
    for (const { counters, counter } of counted) counters.end(counter, failed);
  };
}

const endsWithAll =
  (end: End<void>, shared: SharedAttempts, begun: readonly AttemptCounter[]): End<Promise<void>> =>
  (failed) => {
    end(failed);
    return shared.end(begun, failed);
  };
