import { expect, test } from "bun:test";
import { createWatchdog } from "../../src/jobs/watchdog.ts";

test("the outcome of the last audit stays until the next one has ended", async () => {
  let found: readonly string[] = [];
  const told: (readonly string[])[] = [];
  const audit = async () => {
    if (found.includes("no audit")) throw new Error("not made");
    return found;
  };
  const watchdog = createWatchdog(
    audit,
    (messages) => told.push(messages),
    () => 5,
  );
  expect(watchdog.outcome()).toBeNull();
  await watchdog.run();
  expect(watchdog.outcome()).toEqual({ disagreements: 0, endedAt: 5, durationMs: expect.any(Number) });

  found = ["a is not b", "c is not d"];
  await watchdog.run();
  expect([watchdog.outcome()?.disagreements, told]).toEqual([2, [found]]);

  const disagreeing = watchdog.outcome();
  found = ["no audit"];
  expect(watchdog.run()).rejects.toThrow("not made");
  await watchdog.run().catch(() => {});
  expect([watchdog.outcome(), told.length]).toEqual([disagreeing, 1]);

  found = [];
  await watchdog.run();
  expect([watchdog.outcome()?.disagreements, told.length]).toEqual([0, 1]);
});
