import { beforeEach, expect, test } from "bun:test";
import { createFaultLog } from "../../src/platform/log.ts";

let now: number;
let logged: unknown[];
let logFault: ReturnType<typeof createFaultLog>;
beforeEach(() => {
  now = 0;
  logged = [];
  logFault = createFaultLog(
    (message, error, fields = {}) => logged.push([message, error, fields]),
    () => now,
  );
});
const lines = () => logged.splice(0);

test("the first is logged at once, then one a minute with the count of those that were not", () => {
  for (; now < 180_000; now += 100) logFault("job failed", now, { job: "webhooks" });
  expect(lines()).toEqual([
    ["job failed", 0, { job: "webhooks" }],
    ["job failed", 60_000, { job: "webhooks", unlogged: 599 }],
    ["job failed", 120_000, { job: "webhooks", unlogged: 599 }],
  ]);
  now += 3_600_000;
  logFault("job failed", "again", { job: "webhooks" });
  logFault("job failed", "again", { job: "webhooks" });
  expect(lines()).toEqual([["job failed", "again", { job: "webhooks", unlogged: 599 }]]);
});

test("what has not repeated is logged without a count; others are others", () => {
  logFault("job failed", "a", { job: "webhooks" });
  logFault("job failed", "b", { job: "deadlines" });
  logFault("a check could not be undone", "c", { warrant_id: "wrt_1" });
  now += 60_000;
  logFault("job failed", "d", { job: "webhooks" });
  expect(lines()).toEqual([
    ["job failed", "a", { job: "webhooks" }],
    ["job failed", "b", { job: "deadlines" }],
    ["a check could not be undone", "c", { warrant_id: "wrt_1" }],
    ["job failed", "d", { job: "webhooks" }],
  ]);
});

test("of very many that are told apart, a hundred are; the others are one, and a minute later there is room again", () => {
  const all = () => {
    for (let item = 0; item < 5_000; item++) logFault("broken", "why", { item });
  };
  all();
  all();
  expect(lines()).toHaveLength(101);
  now += 60_000;
  for (const item of [1, 2]) logFault("another", "why", { item });
  expect(lines()).toEqual([
    ["another", "why", { item: 1 }],
    ["another", "why", { item: 2 }],
  ]);
});
