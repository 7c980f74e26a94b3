import { afterEach, beforeEach, expect, test } from "bun:test";
import { sweepDeadlines } from "../../src/jobs/deadlines.ts";
import type { Context } from "../../src/services/context.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { failingOn } from "../support/failing-commands.ts";
import { noFault } from "../support/no-fault.ts";
import { markRestored } from "../support/restored.ts";
import { createStage, open, type Stage, warrantIn } from "../support/stage.ts";

const HOUR_MS = 3_600_000;

let ctx: TestContext;
let stage: Stage;
beforeEach(async () => {
  ctx = createTestContext();
  stage = await createStage(ctx);
});
afterEach(() => ctx.close());

const opened = async (count: number): Promise<readonly string[]> => {
  const answers = await Promise.all(Array.from({ length: count }, () => open(stage, stage.operator)));
  return answers.map((answer) => warrantIn(answer).id);
};
const stateOf = (id = "") => ctx.reader.warrants.find(id)?.state;
const available = () => ctx.reader.balances.list(stage)[0]?.balance.available;

test("overdue warrants expire, once, and their holds return; the others stay held", async () => {
  const [first] = await opened(1);
  expect([await sweepDeadlines(ctx, noFault), stateOf(first), available()]).toEqual([0, "held", 999_900n]);
  ctx.clock.now += HOUR_MS - 1;
  expect(await sweepDeadlines(ctx, noFault)).toBe(0);
  ctx.clock.now += 1;
  expect([await sweepDeadlines(ctx, noFault), stateOf(first), available()]).toEqual([
    1,
    "expired",
    1_000_000n,
  ]);
  expect([await sweepDeadlines(ctx, noFault), available()]).toEqual([0, 1_000_000n]);
});

test("in a restored copy no live warrant expires before the restore is acknowledged", async () => {
  const [id] = await opened(1);
  ctx.clock.now += HOUR_MS;
  await markRestored(ctx);
  expect([await sweepDeadlines(ctx, noFault), stateOf(id), available()]).toEqual([0, "held", 999_900n]);
  await markRestored(ctx, { acknowledgedAt: ctx.now() });
  expect([await sweepDeadlines(ctx, noFault), stateOf(id)]).toEqual([1, "expired"]);
});

test("a backlog of several steps is swept in one run", async () => {
  const ids = await opened(120);
  ctx.clock.now += HOUR_MS;
  expect([ctx.reader.warrants.overdueCount(ctx.now()), await sweepDeadlines(ctx, noFault)]).toEqual([
    120, 120,
  ]);
  expect(ids.map(stateOf).every((state) => state === "expired")).toBeTrue();
  expect(ctx.reader.warrants.overdueCount(ctx.now())).toBe(0);
});

/** A context where the warrants' commands throw. */
const failing = (stuck: ReadonlySet<string>): Context => failingOn(ctx, stuck);

test("warrants that cannot be expired are reported; they stop no others and do not fail the job", async () => {
  const ids = await opened(160);
  const stuck = new Set(ids.slice(0, 120));
  ctx.clock.now += HOUR_MS;
  const reported: string[] = [];
  const onFault = (error: unknown, id: string) => void reported.push(`${error} ${id}`);
  expect(await sweepDeadlines(failing(stuck), onFault)).toBe(40);
  expect(reported.toSorted()).toEqual([...stuck].map((id) => `Error: broken ${id}`).toSorted());
  expect(new Set(ids.filter((id) => stateOf(id) !== "expired"))).toEqual(stuck);
  expect(await sweepDeadlines(ctx, noFault)).toBe(120);
});

test("the job fails where none of ten can be expired; fewer are only reported, and counted in the metrics", async () => {
  const ids = await opened(10);
  ctx.clock.now += HOUR_MS;
  const reported: string[] = [];
  const run = () => sweepDeadlines(failing(new Set(ids)), (_, id) => void reported.push(id));
  await expect(run()).rejects.toThrow("broken");
  expect(reported.splice(0)).toHaveLength(10);
  const nine = new Set(ids.slice(1));
  expect(await sweepDeadlines(failing(nine), () => {})).toBe(1);
  expect(await run()).toBe(0);
  expect([reported.length, ctx.reader.warrants.overdueCount(ctx.now())]).toEqual([9, 9]);
});

test("a run also ends where nothing can be expired", async () => {
  await opened(60);
  ctx.clock.now += HOUR_MS;
  const refusing: Context = { ...ctx, store: { ...ctx.store, execute: async () => false as never } };
  expect(await sweepDeadlines(refusing, noFault)).toBe(0);
});
