import { expect, test } from "bun:test";
import { DAY_MS } from "../../src/core/time.ts";
import { watchClock } from "../../src/store/postgres/others.ts";

/** Seconds of our clock at which the database's is asked, and whether it has gone evenly; by how much it jumps before that, in ms. */
const COURSES: Readonly<
  Record<string, readonly (readonly [at: number, isEven: boolean, jumpMs?: number])[]>
> = {
  "from the start": [
    [0, false],
    [60, false],
    [61, true],
    [400, true],
  ],
  "a jump forwards": [
    [0, false],
    [61, true],
    [62, false, DAY_MS],
    [122, false],
    [123, true],
  ],
  "a jump back": [
    [0, false],
    [61, true],
    [62, false, -DAY_MS],
    [123, true],
  ],
  "a jump before the first minute is over": [
    [0, false],
    [50, false, 30_001],
    [61, false],
    [111, true],
  ],
  "a clock that goes a little wrong": [
    [0, false],
    [61, true, 30_000],
    [62, true, -30_000],
    [63, true, 30_000],
  ],
};

test.each(Object.entries(COURSES))("the database's clock, %s", (_, course) => {
  let now = 0;
  let ahead = 1_795_000_000_000;
  const isEven = watchClock(() => now);
  const found = course.map(([at, , jumpMs = 0]) => {
    now = at * 1_000;
    ahead += jumpMs;
    return isEven(now + ahead);
  });
  expect(found).toEqual(course.map(([, even]) => even));
});
