import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createSchedule, createTally, type Party, type Schedule } from "../../src/core/places.ts";
import type { Mode } from "../../src/core/roles.ts";

const live = (organisationId: string): Party => ({ organisationId, mode: "live" });
const sandbox = (organisationId: string): Party => ({ organisationId, mode: "sandbox" });

describe("256 places", () => {
  /** Takes as many as it gets, and answers how many. */
  const taking = (tally: ReturnType<typeof createTally>) => (party: Party) => {
    let count = 0;
    for (; tally.fits(party); count++) tally.add(party);
    return count;
  };

  const others = (take: (party: Party) => number, mode: Mode) =>
    Array.from({ length: 100 }, (_, index) => take({ organisationId: `other${index}`, mode }));

  test("the sandbox has at most half of them, one organisation half of that, and many have one each", () => {
    const take = taking(createTally(256));
    expect(["a", "b"].map(sandbox).map(take)).toEqual([64, 32]);
    const rest = others(take, "sandbox");
    expect([Math.max(...rest), rest.filter(Boolean).length, rest.reduce((sum, one) => sum + one)]).toEqual([
      1, 32, 32,
    ]);
    // The half for live is untouched.
    expect(take(live("c"))).toBe(64);
  });

  test("one organisation has at most half in all, and its own sandbox takes no more than half of that", () => {
    const take = taking(createTally(256));
    expect([take(sandbox("a")), take(live("a")), take(live("a"))]).toEqual([64, 64, 0]);
  });

  test("the last quarter is for those that have few: some for the first that come, one for many others", () => {
    const take = taking(createTally(256));
    expect([take(live("a")), take(live("b"))]).toEqual([128, 64]);
    const rest = others(take, "live");
    expect(rest.slice(0, 40)).toEqual(rest.slice(0, 40).toSorted((a, b) => b - a));
    expect([rest[0], rest.filter(Boolean).length, rest.reduce((sum, one) => sum + one)]).toEqual([3, 45, 64]);
  });

  test("where live has all but the last quarter, the sandbox has one for each organisation, down to the last eighth", () => {
    const take = taking(createTally(256));
    expect([take(live("a")), take(live("b"))]).toEqual([128, 64]);
    const rest = others(take, "sandbox");
    expect([Math.max(...rest), rest.filter(Boolean).length]).toEqual([1, 32]);
    expect(take(live("c"))).toBe(1);
  });

  test("of one place, anybody may have it", () => {
    for (const party of [live("a"), sandbox("a")]) expect(taking(createTally(1))(party)).toBe(1);
  });
});

type Waiter = Party & { readonly order: number };

/** A schedule with everything that happened to it. */
class Run {
  readonly schedule: Schedule<Waiter>;
  readonly held: Party[] = [];
  readonly waiting: Waiter[] = [];
  private order = 0;

  constructor(
    readonly max: number,
    waitingMax: number,
  ) {
    this.schedule = createSchedule(max, waitingMax);
  }

  /** Takes a place, waits for one, or is sent away. */
  ask(party: Party): "placed" | "waits" | "full" {
    if (this.schedule.take(party)) {
      this.held.push(party);
      return "placed";
    }
    const waiter = { ...party, order: this.order++ };
    if (!this.schedule.join(waiter)) return "full";
    this.waiting.push(waiter);
    return "waits";
  }

  leave(index: number): readonly Waiter[] {
    const [party] = this.held.splice(index % this.held.length, 1);
    if (!party) return [];
    const served = this.schedule.leave(party);
    for (const waiter of served) {
      this.waiting.splice(this.waiting.indexOf(waiter), 1);
      this.held.push(waiter);
    }
    return served;
  }

  giveUp(index: number): void {
    const [waiter] = this.waiting.splice(index % this.waiting.length, 1);
    if (waiter) expect(this.schedule.giveUp(waiter)).toBeTrue();
  }

  heldBy(organisationId?: string, mode?: Mode): number {
    return this.held.filter(
      (party) =>
        (organisationId === undefined || party.organisationId === organisationId) &&
        (mode === undefined || party.mode === mode),
    ).length;
  }

  /** The same counts, by another way. */
  fits(party: Party, but: Party | null = null): boolean {
    const tally = createTally(this.max);
    for (const one of this.held) if (one !== but) tally.add(one);
    return tally.fits(party);
  }
}

const parties = fc.record({
  organisationId: fc.constantFrom("a", "a", "a", "b", "b", "c", "d", "e", "f", "g"),
  mode: fc.constantFrom<Mode>("live", "sandbox"),
});
const steps = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.record({ do: fc.constant("ask" as const), party: parties }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant("leave" as const), index: fc.nat() }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("giveUp" as const), index: fc.nat() }) },
  ),
  { maxLength: 200, size: "max" },
);

/** Plays random steps, and calls `check` after each. */
const always = (check: (run: Run, served: readonly Waiter[], before: readonly Waiter[]) => void) =>
  fc.assert(
    fc.property(fc.constantFrom(1, 2, 3, 8, 20), fc.constantFrom(1, 4, 16), steps, (max, waitingMax, all) => {
      const run = new Run(max, waitingMax);
      for (const step of all) {
        const before = [...run.waiting];
        let served: readonly Waiter[] = [];
        if (step.do === "ask") run.ask(step.party);
        else if (step.do === "leave") served = run.leave(step.index);
        else run.giveUp(step.index);
        check(run, served, before);
      }
    }),
    { numRuns: 300 },
  );

describe("whatever happens", () => {
  test("no more than the places are taken; the sandbox never has all of them, nor one organisation", () =>
    always((run) => {
      const { schedule, max } = run;
      expect(run.held.length).toBeLessThanOrEqual(max);
      expect([schedule.taken("live"), schedule.taken("sandbox")]).toEqual([
        run.heldBy(undefined, "live"),
        run.heldBy(undefined, "sandbox"),
      ]);
      if (max < 2) return;
      expect(schedule.taken("sandbox")).toBeLessThan(max);
      for (const id of "abcdefg") expect(run.heldBy(id)).toBeLessThan(max);
    }));

  test("no more than the room wait, and those who are counted are those who wait", () =>
    always(({ schedule, waiting }) => {
      expect(schedule.waiting("live") + schedule.waiting("sandbox")).toBe(waiting.length);
      expect(waiting.length).toBeLessThanOrEqual(16);
    }));

  test("nobody is forgotten: who waits has no place that it could have", () =>
    always((run) => {
      for (const waiter of run.waiting) expect(run.fits(waiter)).toBeFalse();
    }));

  test("live comes first: no sandbox is served before a live one that could have had the place", () =>
    always((run, served) => {
      for (const one of served.filter(({ mode }) => mode === "sandbox")) {
        for (const { mode, organisationId } of run.waiting)
          if (mode === "live") expect(run.fits({ mode, organisationId }, one)).toBeFalse();
      }
    }));

  test("live comes first, though the sandbox has waited longer; a place that is left may make room for two", () => {
    const run = new Run(16, 16);
    for (const id of "aaaabbcd") run.ask(sandbox(id));
    for (const id of "eeee") run.ask(live(id));
    expect(run.held.length).toBe(12);
    expect([run.ask(sandbox("f")), run.ask(live("e"))]).toEqual(["waits", "waits"]);
    expect(run.leave(0)).toMatchObject([live("e"), sandbox("f")]);
  });

  test("within an organisation's mode, who came first is served first", () =>
    always((_, served, before) => {
      for (const one of served) {
        const own = before.filter((waiter) => same(waiter, one) && !served.includes(waiter));
        for (const waiter of own) expect(waiter.order).toBeGreaterThan(one.order);
      }
    }));
});

const same = (a: Party, b: Party): boolean => a.organisationId === b.organisationId && a.mode === b.mode;

describe("organisations take turns", () => {
  test("a hundred that wait do not stand before another's first", () => {
    const run = new Run(8, 256);
    for (let count = 0; count < 4; count++) run.ask(live("a"));
    for (let count = 0; count < 2; count++) run.ask(live("b"));
    for (let count = 0; count < 2; count++) run.ask(live(`other${count}`));
    for (let count = 0; count < 100; count++) run.ask(live("a"));
    expect(run.ask(live("c"))).toBe("waits");
    // A place of a, and one of b: neither fits again before c has had its turn.
    expect(run.leave(0).map(({ organisationId }) => organisationId)).toEqual(["c"]);
  });

  test("among those that fit, each is served once before any is served twice", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(..."abcdef"), { minLength: 6, maxLength: 60 }), (asked) => {
        const run = new Run(64, 256);
        // One organisation's slow ones hold its half; another's leave only the last quarter.
        for (let count = 0; count < 32; count++) run.ask(live("x"));
        for (let count = 0; count < 16; count++) run.ask(live("y"));
        for (const id of new Set(asked)) run.ask(live(id));
        for (const id of asked) run.ask(live(id));
        const turns: string[] = [];
        while (run.waiting.length > 0 && run.heldBy("x") > 0) {
          const index = run.held.findIndex(({ organisationId }) => organisationId === "x");
          for (const { organisationId } of run.leave(index)) turns.push(organisationId);
        }
        const waiting = new Map<string, number>();
        for (const id of asked) waiting.set(id, (waiting.get(id) ?? 0) + 1);
        const seen = new Map<string, number>();
        for (const id of turns) {
          const had = seen.get(id) ?? 0;
          for (const [other, count] of waiting) {
            if (other !== id) expect((seen.get(other) ?? 0) >= Math.min(had, count)).toBeTrue();
          }
          seen.set(id, had + 1);
        }
      }),
      { numRuns: 200 },
    );
  });

  test("no starvation: however others keep their places, an organisation without a live one finds one at once", () => {
    const others = fc.array(
      fc.record({
        organisationId: fc.constantFrom(..."abcd"),
        mode: fc.constantFrom<Mode>("live", "sandbox"),
        // Most keep theirs, so that the places fill up.
        leaves: fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.nat() }),
      }),
      { maxLength: 300, size: "max" },
    );
    fc.assert(
      fc.property(others, (all) => {
        // A quarter of 20 is five organisations: four others, and this one.
        const run = new Run(20, 16);
        for (const { leaves, ...party } of all) {
          run.ask(party);
          if (leaves !== null && run.held.length > 0) run.leave(leaves);
        }
        expect(run.ask(live("me"))).toBe("placed");
      }),
      { numRuns: 300 },
    );
  });
});
