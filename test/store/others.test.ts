import { expect, test } from "bun:test";
import { DAY_MS, SECOND_MS } from "../../src/core/time.ts";
import type { Sessions, Statement } from "../../src/store/postgres/client.ts";
import type { LedgerWatch } from "../../src/store/postgres/ledger-watch.ts";
import { followOthers, watchClock } from "../../src/store/postgres/others.ts";
import { until } from "../support/until.ts";

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

/** Follows other processes by answers of the test: each time the ids of commits, and the seconds of the database's clock. */
function follow(answers: readonly (readonly [ids: readonly string[], second: number])[]) {
  let asked = 0;
  const exchange = async (statements: readonly Statement[]) =>
    statements.map(({ text }) => {
      const [ids, second] = answers[asked] ?? [[], 0];
      if (text.includes("AS now")) return [{ now: BigInt(second * SECOND_MS) }];
      if (text.startsWith("SELECT id")) return ids.map((id) => ({ id }));
      return text.startsWith("SELECT DISTINCT") ? [{ news: `news ${asked}` }] : [];
    });
  const release = () => {
    asked += 1;
  };
  const sessions = { reserve: async () => ({ exchange, release }) } as unknown as Sessions;
  const watch = { verify: async () => {}, needed: () => [] } as unknown as LedgerWatch;
  const others = followOthers(sessions, { process: "one", version: "0.1.0" }, watch);
  return { others, asked: (times: number) => until(`it has asked ${times} times`, () => asked >= times) };
}

const ids = (count: number): readonly string[] => Array.from({ length: count }, (_, id) => `${id}`);

test.concurrent.each<[string, Parameters<typeof follow>[0], readonly string[] | null]>([
  [
    "is told once",
    [
      [ids(1), 1],
      [ids(2), 2],
      [ids(2), 3],
    ],
    ["news 0", "news 1"],
  ],
  [
    "may be anything after a long time without an answer",
    [
      [ids(1), 1],
      [ids(1), 32],
    ],
    null,
  ],
  ["may be anything where it is much", [[ids(1_001), 1]], null],
])("what others commit %s", async (_, answers, expected) => {
  const { others, asked } = follow(answers);
  await asked(answers.length);
  others.stop();
  expect(others.news()).toEqual(expected as never);
  expect(others.news()).toEqual([]);
});
