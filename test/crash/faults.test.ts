import { expect, test } from "bun:test";
import { createSchedule } from "./faults.ts";
import { createRandom } from "./random.ts";

test("each five rounds of crashes of instances have one of every family, and no connection, of all or of one, breaks in one way again before in all others", () => {
  for (const seed of [1, 2, 3]) {
    const next = createSchedule(createRandom(seed));
    const faults = Array.from({ length: 30 }, () => next());
    for (const first of [0, 5, 10, 15, 20, 25]) {
      const families = faults.slice(first, first + 5).map(({ family }) => family);
      expect(families.toSorted()).toEqual(["connection", "database", "failover", "instance", "isolation"]);
    }
    for (const broken of ["connection", "isolation"])
      expect(new Set(faults.filter(({ family }) => family === broken).map(({ name }) => name)).size).toBe(6);
  }
  const firstOf = (seed: number) => createSchedule(createRandom(seed))().name;
  expect(firstOf(7)).toBe(firstOf(7));
  expect(new Set([1, 2, 3, 4, 5, 6].map(firstOf)).size).toBeGreaterThan(1);
});
