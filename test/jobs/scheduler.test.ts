import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import {
  type Job,
  type Run,
  type Scheduler,
  type SharedJob,
  startScheduler,
} from "../../src/jobs/scheduler.ts";
import type { Context } from "../../src/services/context.ts";
import { ALONE } from "../../src/store/instances.ts";
import { createTestContext, type TestContext } from "../support/context.ts";

/** Tests start these jobs by hand, unless they say otherwise. */

const NEVER_MS = 1_000_000_000;

let ctx: TestContext;
let scheduler: Scheduler;
const faults: string[] = [];
beforeAll(() => {
  ctx = createTestContext();
});
afterAll(() => ctx.close());
afterEach(async () => {
  await scheduler.stop();
  faults.length = 0;
});

type Timed = Pick<Job, "name"> & Partial<Pick<Job, "everyMs" | "firstMs" | "patienceMs">>;

const startAll = (jobs: readonly (Timed & Pick<Job, "doneBy">)[], on: Context = ctx): void => {
  scheduler = startScheduler(
    jobs.map((job) => ({ everyMs: NEVER_MS, ...job }) as Job),
    { ctx: on, onFault: (job, error) => faults.push(`${job}: ${error}`), now: () => 1_000 },
  );
};
const start = (...jobs: readonly (Timed & { readonly run: Run })[]): void =>
  startAll(jobs.map((job) => ({ ...job, doneBy: "each" as const })));

const stateOf = (name: string) => scheduler.states().find((state) => state.name === name);

test("nothing is known of a job before its first run", () => {
  start({ name: "a", run: async () => {} });
  expect(stateOf("a")).toEqual({
    ...{ name: "a", running: false, runs: 0, failures: 0, lastOutcome: null, lagMs: 0 },
    ...{ lastStartedAt: null, lastEndedAt: null, lastDurationMs: null, quietMs: 0, stuck: false },
  });
});

test("a run is observed, and what a job answers does not matter", async () => {
  start({ name: "a", run: async () => 7 }, { name: "b", run: async () => {} });
  await scheduler.run("a");
  expect(stateOf("a")).toMatchObject({
    ...{ running: false, runs: 1, failures: 0, lastOutcome: "succeeded", lagMs: 0, stuck: false },
    ...{ lastStartedAt: 1_000, lastEndedAt: 1_000, lastDurationMs: expect.any(Number) },
  });
  expect(stateOf("b")?.runs).toBe(0);
});

describe("a run that fails", () => {
  const broken = () => {
    throw new Error("broken");
  };
  test.each([
    ["at once", broken],
    ["later", async () => broken()],
  ])("%s is reported, and the next run comes as usual", async (_, run) => {
    let fails = true;
    start({ name: "a", run: async () => fails && run() });
    await scheduler.run("a");
    expect(stateOf("a")).toMatchObject({ runs: 1, failures: 1, lastOutcome: "failed", running: false });
    fails = false;
    await scheduler.run("a");
    expect(stateOf("a")).toMatchObject({ runs: 2, failures: 1, lastOutcome: "succeeded" });
    expect(faults).toEqual(["a: Error: broken"]);
  });

  test("because the job throws before it returns a promise counts as any other", async () => {
    start({ name: "a", run: broken });
    await scheduler.run("a");
    await scheduler.run("a");
    expect([stateOf("a")?.runs, faults.length]).toEqual([2, 2]);
  });
});

test("two runs of a job do not overlap, and a job does not hold up others", async () => {
  const gate = Promise.withResolvers<void>();
  let begun = 0;
  start(
    {
      name: "slow",
      everyMs: 1,
      run: () => {
        begun += 1;
        return gate.promise;
      },
    },
    { name: "quick", run: async () => {} },
  );
  const first = scheduler.run("slow");
  const second = scheduler.run("slow");
  await scheduler.run("quick");
  expect([begun, stateOf("slow")?.running, stateOf("quick")?.runs]).toEqual([1, true, 1]);
  gate.resolve();
  await Promise.all([first, second]);
  expect(stateOf("slow")).toMatchObject({ runs: begun });
});

test("a job runs at its interval, and its first run may come sooner", async () => {
  const ran: Record<string, () => void> = {};
  const runOf = (name: string) =>
    new Promise<void>((resolve) => {
      ran[name] = resolve;
    });
  const all = Promise.all([runOf("often"), runOf("soon")]);
  const run = (name: string) => async () => ran[name]?.();
  start(
    { name: "often", everyMs: 1, run: run("often") },
    { name: "soon", firstMs: 0, run: run("soon") },
    { name: "late", run: run("late") },
  );
  await all;
  expect(stateOf("late")?.runs).toBe(0);
});

test("a stop waits for what is running, and nothing runs after it", async () => {
  const gate = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  let ended = false;
  start({
    name: "a",
    everyMs: 1,
    run: async () => {
      begun.resolve();
      await gate.promise;
      ended = true;
    },
  });
  await begun.promise;
  const stopped = scheduler.stop();
  gate.resolve();
  await stopped;
  expect(ended).toBeTrue();
  const runs = stateOf("a")?.runs;
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  expect([runs, stateOf("a")?.runs]).toEqual([1, 1]);
});

test("a job that has not succeeded for longer than its patience is stuck, until it does", async () => {
  let fails = true;
  start({
    name: "a",
    firstMs: 0,
    patienceMs: 0,
    run: async () => {
      if (fails) throw new Error("broken");
    },
  });
  await scheduler.run("a");
  // The patience is 0, so it is over as soon as the clock has moved.
  const endedAt = performance.now();
  while (performance.now() <= endedAt);
  expect(stateOf("a")).toMatchObject({ stuck: true, quietMs: expect.any(Number) });
  fails = false;
  await scheduler.run("a");
  expect(stateOf("a")?.quietMs ?? 1).toBeLessThan(1_000);
});

test("there is no job of another name", () => {
  start({ name: "a", run: async () => {} });
  expect(scheduler.run("b")).rejects.toThrow("there is no job b");
});

describe("a job that one instance does at a time", () => {
  let token: number | null;
  let runs: string[];
  const startShared = (begin: SharedJob["begin"]): void => {
    const instances = { ...ALONE, lease: () => ({ token: () => token }) };
    startAll([{ name: "a", doneBy: "one", begin, firstMs: 0, patienceMs: 50 } as Timed & SharedJob], {
      ...ctx,
      instances,
    });
  };
  const named = () => {
    let begun = 0;
    startShared(() => {
      const name = `lease ${++begun}`;
      return async () => void runs.push(name);
    });
  };

  test("is done under the lease of its name alone, and is not stuck without", async () => {
    token = null;
    runs = [];
    named();
    const startedAt = performance.now();
    while (performance.now() - startedAt < 100);
    await scheduler.run("a");
    expect(runs).toEqual([]);
    expect(stateOf("a")).toMatchObject({ runs: 0, lastOutcome: null, lastStartedAt: null, stuck: false });
    token = 1;
    await scheduler.run("a");
    expect([runs, stateOf("a")?.runs]).toEqual([["lease 1"], 1]);
  });

  test("begins anew with each lease, and not with each run", async () => {
    token = 3;
    runs = [];
    named();
    await scheduler.run("a");
    await scheduler.run("a");
    // Lost and taken again between two runs: another instance may have worked meanwhile.
    token = 5;
    await scheduler.run("a");
    token = null;
    await scheduler.run("a");
    token = 6;
    await scheduler.run("a");
    expect(runs).toEqual(["lease 1", "lease 1", "lease 2", "lease 3"]);
  });

  test("ends before its next step where the lease is lost, and that is no failure", async () => {
    token = 1;
    runs = [];
    const gate = Promise.withResolvers<void>();
    startShared(() => async (at) => {
      runs.push((await at.store.read((reader) => reader.instance.get())).id);
      await gate.promise;
      await at.store.execute({ scope: null, needs: {}, decide: () => ({ answer: null }) });
      runs.push("written");
    });
    const run = scheduler.run("a");
    await Promise.resolve();
    token = 2;
    gate.resolve();
    await run;
    expect([runs.length, faults, stateOf("a")?.failures]).toEqual([1, [], 0]);
    expect(runs).not.toContain("written");
  });
});
