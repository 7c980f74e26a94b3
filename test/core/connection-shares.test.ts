import { expect, test } from "bun:test";
import { connectionsFor, limitsOfConnections, sharesOf } from "../../src/core/connection-shares.ts";

const LIMITS = { all: 80, each: 10 };

test("one address has an eighth of all connections, and at least one", () => {
  expect([limitsOfConnections(80), limitsOfConnections(4)]).toEqual([LIMITS, { all: 4, each: 1 }]);
});

test("an eighth of the descriptors stays free, at least as many as are spare", () => {
  expect(connectionsFor(20_000, 64, 64)).toBe(20_000 - 64 - 2_500);
  expect(connectionsFor(400, 64, 64)).toBe(400 - 64 - 64);
  expect(connectionsFor(100, 64, 64)).toBe(1);
});

test("an address keeps its share, and those below theirs keep everything", () => {
  expect(sharesOf([500, 10, 3, 11], LIMITS)).toEqual([10, 10, 3, 10]);
});

test("where all are too many, those with the most lose first", () => {
  expect(sharesOf([...Array(10).fill(10), 1, 2], LIMITS)).toEqual([
    ...Array(7).fill(8),
    ...Array(3).fill(7),
    1,
    2,
  ]);
});

test("the places are all given out, also where there are fewer than addresses", () => {
  const shares = sharesOf(Array(200).fill(1), LIMITS);
  expect(shares.filter((share) => share === 1)).toHaveLength(80);
});

test("no place is given out twice, whatever the counts", () => {
  for (let seed = 1; seed < 500; seed++) {
    const counts = Array.from({ length: seed % 40 }, (_, at) => (seed * (at + 7)) % 31);
    const shares = sharesOf(counts, LIMITS);
    const wanted = counts.reduce((sum, count) => sum + Math.min(count, LIMITS.each), 0);
    expect(shares.reduce((sum, share) => sum + share, 0)).toBe(Math.min(wanted, LIMITS.all));
    expect(shares.every((share, at) => share <= Math.min(counts[at] ?? 0, LIMITS.each))).toBe(true);
  }
});
