import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { budgetOf, secondsToReset, WINDOW_MS, windowOf } from "../../src/core/rate.ts";

// A multiple of 60 seconds.
const START = Date.UTC(2030, 0, 15, 12);

describe("the window", () => {
  test("is of 60 seconds, fixed", () => {
    expect(WINDOW_MS).toBe(60_000);
    const first = windowOf(START);
    expect([0, 1, 59_999].map((later) => windowOf(START + later))).toEqual([first, first, first]);
    expect([-1, 60_000, 119_999, 120_000].map((later) => windowOf(START + later) - first)).toEqual([
      -1, 1, 1, 2,
    ]);
  });

  const SECONDS: readonly (readonly [later: number, seconds: number])[] = [
    [0, 60],
    [1, 60],
    [999, 60],
    [1_000, 59],
    [1_001, 59],
    [30_000, 30],
    [58_999, 2],
    [59_000, 1],
    [59_999, 1],
    [60_000, 60],
  ];
  for (const [later, seconds] of SECONDS) {
    test(`has ${seconds} s to go after ${later} ms`, () =>
      expect(secondsToReset(START + later)).toBe(seconds));
  }

  test("begins anew once the seconds to its reset have passed, and not a second before", () => {
    fc.assert(
      fc.property(fc.integer({ min: START, max: START + 10 * WINDOW_MS }), (now) => {
        const seconds = secondsToReset(now);
        expect(seconds >= 1 && seconds <= 60).toBeTrue();
        expect(windowOf(now + seconds * 1_000)).toBe(windowOf(now) + 1);
        expect(windowOf(now + (seconds - 1) * 1_000)).toBe(windowOf(now));
      }),
    );
  });
});

describe("the budget", () => {
  const TABLE: readonly (readonly [limit: number, used: number, remaining: number, exceeded: boolean])[] = [
    [60, 0, 60, false],
    [60, 1, 59, false],
    [60, 59, 1, false],
    [60, 60, 0, false],
    [60, 61, 0, true],
    [60, 1_000, 0, true],
    [1, 1, 0, false],
    [1, 2, 0, true],
  ];
  for (const [limit, used, remaining, exceeded] of TABLE) {
    test(`of ${limit} after ${used}: ${remaining} left${exceeded ? ", exceeded" : ""}`, () => {
      expect(budgetOf(limit, used, START + 12_345)).toEqual({ limit, remaining, resetSeconds: 48, exceeded });
    });
  }
});
