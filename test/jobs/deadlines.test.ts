import { afterEach, beforeEach, expect, test } from "bun:test";
import { sweepDeadlines } from "../../src/jobs/deadlines.ts";
import type { Context } from "../../src/services/context.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
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
const stateOf = (id = "") => ctx.store.reader.warrants.find(id)?.state;
const available = () => ctx.store.reader.balances.list(stage)[0]?.balance.available;

test("what is due expires, once, and its hold returns; what is not stays held", async () => {
  const [first] = await opened(1);
  expect([await sweepDeadlines(ctx), stateOf(first), available()]).toEqual([0, "held", 999_900n]);
  ctx.clock.now += HOUR_MS - 1;
  expect(await sweepDeadlines(ctx)).toBe(0);
  ctx.clock.now += 1;
  expect([await sweepDeadlines(ctx), stateOf(first), available()]).toEqual([1, "expired", 1_000_000n]);
  expect([await sweepDeadlines(ctx), available()]).toEqual([0, 1_000_000n]);
});

test("a backlog of several steps is swept in one run", async () => {
  const ids = await opened(120);
  ctx.clock.now += HOUR_MS;
  expect([ctx.store.reader.warrants.overdueCount(ctx.now()), await sweepDeadlines(ctx)]).toEqual([120, 120]);
  expect(ids.map(stateOf).every((state) => state === "expired")).toBeTrue();
  expect(ctx.store.reader.warrants.overdueCount(ctx.now())).toBe(0);
});

test("those that cannot be expired are told, and keep no other from it", async () => {
  const ids = await opened(160);
  const stuck = new Set(ids.slice(0, 120));
  ctx.clock.now += HOUR_MS;
  const broken: Context = {
    ...ctx,
    store: {
      ...ctx.store,
      execute: async (command) => {
        if (stuck.has(command.needs.warrantId ?? "")) throw new Error("broken");
        return ctx.store.execute(command);
      },
    },
  };
  expect(sweepDeadlines(broken)).rejects.toThrow("broken");
  await sweepDeadlines(broken).catch(() => {});
  expect(new Set(ids.filter((id) => stateOf(id) !== "expired"))).toEqual(stuck);
  expect(await sweepDeadlines(ctx)).toBe(120);
});

test("where nothing can be expired a run ends all the same", async () => {
  await opened(60);
  ctx.clock.now += HOUR_MS;
  const refusing: Context = { ...ctx, store: { ...ctx.store, execute: async () => false as never } };
  expect(await sweepDeadlines(refusing)).toBe(0);
});
