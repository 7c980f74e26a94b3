import { describe, expect, test } from "bun:test";
import { sha256 } from "../../../src/core/canonical.ts";
import {
  createSignInThrottle,
  type SignInThrottle,
  type ThrottleOptions,
  type Tried,
} from "../../../src/services/auth/throttle.ts";
import { createTimers } from "../../support/timers.ts";

/** After ten failures of an account in an hour each try waits; a network has a limit of its own (docs/people, "Guessing"). */

const QUARTER_MS = 15 * 60_000;
const HOUR_MS = 4 * QUARTER_MS;

const throttleOf = (options: Partial<ThrottleOptions> = {}) => {
  const timers = createTimers();
  return { timers, throttle: createSignInThrottle({ after: timers.after, secret: "test", ...options }) };
};

const tried = (account: string | null, network: string, more: Partial<Tried> = {}): Tried => ({
  ...{ by: "password", account, trusted: false, network },
  ...more,
});
const aTurn = () => new Promise((resolve) => setImmediate(resolve));

/** Begins a try that has not to wait, and ends it. Answers whether it was admitted. */
async function attempt(throttle: SignInThrottle, what: Tried, { failed = true, now = 0 } = {}) {
  const end = await throttle.begin(what, () => now);
  end?.(failed);
  return end !== null;
}

async function admitted(throttle: SignInThrottle, tries: readonly Tried[], now = 0): Promise<number> {
  let count = 0;
  for (const one of tries) if (await attempt(throttle, one, { now })) count += 1;
  return count;
}

/** Very many accounts, so that no account has a limit. */
const strangersAt = (network: string, count: number, more: Partial<Tried> = {}) =>
  Array.from({ length: count }, (_, index) => tried(`${index}@x`, network, more));
/** Tries for one account, each from somewhere else. */
const fromEverywhere = (account: string, count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => tried(account, `198.51.100.${from + index}`));

describe("an account", () => {
  test("after ten failures, from wherever, each try waits: 1, 2, 4, 8, 16 and then 30 s", async () => {
    const { throttle, timers } = throttleOf();
    expect(await admitted(throttle, fromEverywhere("a@x", 10))).toBe(10);
    const waited: number[] = [];
    for (const one of fromEverywhere("a@x", 8, 10)) {
      const begun = throttle.begin(one, () => 0);
      await aTurn();
      waited.push(...timers.waits());
      timers.fire();
      (await begun)?.(true);
    }
    expect(waited).toEqual([1, 2, 4, 8, 16, 30, 30, 30].map((seconds) => seconds * 1_000));
    expect(await attempt(throttle, tried("b@x", "198.51.100.1"))).toBeTrue();
  });

  test("tries that wait count as failures, so that many at once wait no less than one after the other", async () => {
    const { throttle, timers } = throttleOf();
    await admitted(throttle, fromEverywhere("a@x", 10));
    const begun = fromEverywhere("a@x", 7, 10).map((one) => throttle.begin(one, () => 0));
    await aTurn();
    expect(timers.waits()).toEqual([1, 2, 4, 8, 16, 30, 30].map((seconds) => seconds * 1_000));
    timers.fire();
    expect((await Promise.all(begun)).every((end) => end !== null)).toBeTrue();
  });

  test("an hour after its first try nothing waits, nor where a wrong clock began the hour", async () => {
    for (const now of [HOUR_MS, -1]) {
      const { throttle, timers } = throttleOf();
      await admitted(throttle, fromEverywhere("a@x", 10));
      expect(await attempt(throttle, tried("a@x", "192.0.2.1"), { now })).toBeTrue();
      expect(timers.waits()).toEqual([]);
    }
  });

  test("a try that did not fail is not counted, and forgiven failures are none", async () => {
    const { throttle } = throttleOf();
    for (let again = 0; again < 30; again++) {
      expect(await attempt(throttle, tried("a@x", "192.0.2.1"), { failed: false })).toBeTrue();
    }
    await admitted(throttle, fromEverywhere("a@x", 10));
    throttle.forgive("a@x", 0);
    expect(await admitted(throttle, fromEverywhere("a@x", 10))).toBe(10);
  });
});

describe("a network", () => {
  test("has a hundred failures in a quarter of an hour, whichever accounts were tried", async () => {
    const { throttle } = throttleOf();
    expect(await admitted(throttle, strangersAt("192.0.2.1", 120))).toBe(100);
    expect(await admitted(throttle, strangersAt("192.0.2.2", 1))).toBe(1);
    const budget = (by: Tried["by"], now: number) => throttle.budgetOf({ by, network: "192.0.2.1" }, now);
    expect(budget("password", 1_000)).toEqual({ limit: 100, resetSeconds: 899 });
    // Where only a place is missing, the next second may have one.
    expect(budget("passkey", 1_000)).toEqual({ limit: 10, resetSeconds: 1 });
    expect(await admitted(throttle, strangersAt("192.0.2.1", 1), QUARTER_MS)).toBe(1);
  });

  test("of IPv6 has 50 in an hour for a /56, and 200 for a /48", async () => {
    const { throttle } = throttleOf();
    /** Each /64 of a /56 once. */
    const sites = (site: string, count: number, now = 0) =>
      admitted(
        throttle,
        Array.from({ length: count }, (_, index) =>
          tried(`${site}${index}@x`, `2001:db8:1:${site}${index.toString(16).padStart(2, "0")}::/64`),
        ),
        now,
      );
    expect(await sites("1", 60)).toBe(50);
    // A quarter of an hour is too short.
    expect(await sites("1", 1, QUARTER_MS)).toBe(0);
    expect([await sites("2", 60), await sites("3", 60), await sites("4", 60), await sites("5", 60)]).toEqual([
      50, 50, 50, 0,
    ]);
    expect(await admitted(throttle, strangersAt("2001:db8:2:100::/64", 60))).toBe(50);
    expect(await sites("1", 60, HOUR_MS)).toBe(50);
  });

  test("by passkey is counted apart: who guesses passwords keeps nobody from it", async () => {
    const { throttle } = throttleOf();
    expect(await admitted(throttle, strangersAt("192.0.2.1", 120))).toBe(100);
    const passkeys = Array.from({ length: 120 }, () => tried(null, "192.0.2.1", { by: "passkey" }));
    expect(await admitted(throttle, passkeys)).toBe(100);
  });
});

describe("places of tries that wait", () => {
  const room = { all: 6, ofAccount: 3, ofNetwork: 3, ofBoth: 2 };
  /** A throttle where everything about these accounts waits. */
  async function guessed(accounts: readonly string[]) {
    const made = throttleOf({ room });
    for (const account of accounts) await admitted(made.throttle, fromEverywhere(account, 10));
    const outcomes: (boolean | null)[] = [];
    /** Begins a try; its outcome is null while it waits. */
    const begin = async (what: Tried) => {
      const index = outcomes.push(null) - 1;
      void made.throttle
        .begin(what, () => 0)
        .then((end) => {
          outcomes[index] = end !== null;
          end?.(true);
        });
      await aTurn();
      return index;
    };
    return { ...made, outcomes, begin };
  }

  test("are few for an account, for a network, and in all", async () => {
    const { begin, outcomes } = await guessed(["a@x", "b@x", "c@x"]);
    const waits = async (what: Tried) => outcomes[await begin(what)] === null;
    const at = (account: string, ...hosts: readonly number[]) =>
      hosts.map((host) => tried(account, `203.0.113.${host}`));
    const all = async (tries: readonly Tried[]) => {
      const found: boolean[] = [];
      for (const one of tries) found.push(await waits(one));
      return found;
    };
    // Two of one network for one account, three for it.
    expect(await all(at("a@x", 1, 1, 1, 2, 3))).toEqual([true, true, false, true, false]);
    // Three of one network.
    expect(await all(at("b@x", 1, 1, 2, 3))).toEqual([true, false, true, true]);
    // Six in all, where nobody tried more.
    expect(await all(at("c@x", 3))).toEqual([false]);
  });

  test("are those of a /48 together", async () => {
    const { begin, outcomes } = await guessed(["a@x"]);
    for (const site of ["1", "2", "3"]) await begin(tried("a@x", `2001:db8:1:${site}00::/64`));
    expect(outcomes).toEqual([null, null, false]);
  });

  test("are given up by those who failed more for whoever failed less: nobody is kept out", async () => {
    const { begin, outcomes, throttle, timers } = await guessed(["a@x"]);
    for (const host of [1, 2, 3]) await attempt(throttle, tried(`${host}@x`, `203.0.113.${host}`));
    await attempt(throttle, tried("more@x", "203.0.113.2"));
    for (const host of [1, 2, 3]) await begin(tried("a@x", `203.0.113.${host}`));
    expect(outcomes).toEqual([null, null, null]);
    // The second has failed twice.
    const owner = await begin(tried("a@x", "192.0.2.1"));
    expect(outcomes).toEqual([null, false, null, null]);
    // Those who failed find no place now.
    await begin(tried("a@x", "203.0.113.2"));
    expect(outcomes[4]).toBe(false);
    expect(Math.max(...timers.waits())).toBeLessThanOrEqual(30_000);
    timers.fire();
    await aTurn();
    expect(outcomes[owner]).toBe(true);
  });

  test("are given up by those who try again and again, though they never found one: nor do these keep anybody out", async () => {
    const { begin, outcomes, timers } = await guessed(["a@x"]);
    // Ten networks try for three places.
    const strangers = Array.from({ length: 10 }, (_, host) => tried("a@x", `203.0.113.${host}`));
    for (const stranger of strangers) await begin(stranger);
    timers.fire();
    await aTurn();
    for (const stranger of strangers) await begin(stranger);
    const owner = await begin(tried("a@x", "192.0.2.1"));
    for (const stranger of strangers) await begin(stranger);
    expect(outcomes[owner]).toBeNull();
    timers.fire();
    await aTurn();
    expect(outcomes[owner]).toBe(true);
  });

  test("are found by whoever is known, though all are taken by strangers who never failed", async () => {
    const { begin, outcomes } = await guessed(["a@x", "b@x", "known a@x"]);
    for (const host of [1, 2, 3]) await begin(tried("a@x", `203.0.113.${host}`));
    for (const host of [4, 5, 6]) await begin(tried("b@x", `203.0.113.${host}`));
    const known = await begin(tried("known a@x", "192.0.2.1", { trusted: true }));
    expect(outcomes[known]).toBeNull();
    expect(outcomes.filter((outcome) => outcome === null)).toHaveLength(6);
  });

  test("are all left when the server stops, and nobody waits after that", async () => {
    const { begin, outcomes, throttle, timers } = await guessed(["a@x"]);
    await begin(tried("a@x", "203.0.113.1"));
    throttle.close();
    await begin(tried("a@x", "203.0.113.2"));
    expect([outcomes, timers.waits()]).toEqual([[false, false], []]);
  });
});

describe("memory", () => {
  test("beyond its counters a new account shares one of many; earlier ones keep their own", async () => {
    const { throttle, timers } = throttleOf({ countersMax: 4 });
    const waits = async (account: string) => {
      const begun = throttle.begin(tried(account, "192.0.2.1"), () => 0);
      await aTurn();
      const waited = timers.waits().length > 0;
      timers.fire();
      (await begun)?.(false);
      return waited;
    };
    for (const account of ["a@x", "b@x", "c@x"]) await admitted(throttle, fromEverywhere(account, 10));
    // Of 1,000 strangers' accounts and networks, all but the first have no counter of their own.
    for (let index = 0; index < 1_000; index++) {
      await attempt(throttle, tried(`${index}@x`, `10.0.${index >> 8}.${index & 255}`));
    }
    expect([await waits("a@x"), await waits("b@x"), await waits("c@x")]).toEqual([true, true, true]);
    expect([await waits("new@x"), await waits("another@x")]).toEqual([false, false]);
    // What shares a counter is counted all the same.
    await admitted(throttle, fromEverywhere("new@x", 10));
    expect(await waits("new@x")).toBeTrue();
  });

  test("is bounded: beyond its counters two accounts share one of 4,096, until others are over", async () => {
    const bucketOf = (account: string) => sha256(`test ${account}`).slice(0, 3);
    const names = Array.from({ length: 1_000 }, (_, index) => `${index}@x`);
    const found = names.findLast((name, at) =>
      names.slice(0, at).some((other) => bucketOf(other) === bucketOf(name)),
    )!;
    const twin = names.find((name) => bucketOf(name) === bucketOf(found))!;
    expect(twin).not.toBe(found);
    for (const [now, waits] of [
      [0, [1_000]],
      [HOUR_MS, []],
    ] as const) {
      const { throttle, timers } = throttleOf({ countersMax: 4 });
      await admitted(
        throttle,
        ["a@x", "b@x", "c@x", "d@x"].map((account) => tried(account, "192.0.2.1")),
      );
      await admitted(throttle, fromEverywhere(twin, 10), now);
      void throttle.begin(tried(found, "192.0.2.1"), () => now);
      await aTurn();
      expect(timers.waits()).toEqual([...waits]);
    }
  });
});

describe("tries that arrive together", () => {
  /** Starts them all; each ends one turn later. Answers how many were admitted, and the most that ran at once. */
  async function together(tries: readonly Tried[], failed: boolean) {
    const { throttle } = throttleOf();
    let [inFlight, most, answered] = [0, 0, 0];
    for (const one of tries) {
      void throttle
        .begin(one, () => 0)
        .then(async (end) => {
          if (!end) return;
          answered += 1;
          inFlight += 1;
          most = Math.max(most, inFlight);
          await aTurn();
          inFlight -= 1;
          end(failed);
        });
    }
    for (let turn = 0; turn < 40; turn++) await aTurn();
    return { admitted: answered, most };
  }
  const own = (count: number) => Array.from({ length: count }, () => tried("a@x", "192.0.2.1"));

  test("are all admitted where they are right: ten of an account at a time, a hundred of a network", async () => {
    expect(await together(own(60), false)).toEqual({ admitted: 60, most: 10 });
    const strangers = strangersAt("192.0.2.1", 190);
    expect(await together(strangers, false)).toEqual({ admitted: 190, most: 100 });
  });

  test("are ten of an account and a hundred of a network where they are wrong", async () => {
    expect(await together(own(60), true)).toEqual({ admitted: 10, most: 10 });
    expect(await together(strangersAt("192.0.2.1", 190), true)).toEqual({ admitted: 100, most: 100 });
  });

  test("wait in a queue of limited length", async () => {
    expect(await together(own(300), false)).toEqual({ admitted: 110, most: 10 });
  });

  test("one that waits continues as soon as another one succeeds, and waits for its time when the last one fails", async () => {
    const { throttle, timers } = throttleOf();
    const begin = () => throttle.begin(tried("a@x", "192.0.2.1"), () => 0);
    const [first, ...others] = await Promise.all(Array.from({ length: 10 }, begin));
    const next = begin();
    first?.(false);
    const end = await next;
    expect(end).toBeFunction();
    const last = begin();
    for (const other of [...others, end]) other?.(true);
    await aTurn();
    expect(timers.waits()).toEqual([1_000]);
    timers.fire();
    expect(await last).toBeFunction();
  });
});
