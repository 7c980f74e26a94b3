import { afterEach, beforeEach, expect, test } from "bun:test";
import { recoverAtStart, recoverOverdueChecks } from "../../src/jobs/recover.ts";
import { CHECK_LEASE_MS } from "../../src/services/warrants/interrupt.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { failingOn } from "../support/failing-commands.ts";
import { createCaller, createStage, open, SCRIPTED, verify, warrantIn } from "../support/stage.ts";
import { until } from "../support/until.ts";

/** Interrupted checks are undone. One that cannot be undone does not stop the others. */

let ctx: TestContext;
let gate: PromiseWithResolvers<void>;
let running: Promise<unknown>[];
let ids: string[];
beforeEach(async () => {
  gate = Promise.withResolvers();
  ctx = createTestContext({
    ...SCRIPTED,
    fetchEvidence: async (...asked) => {
      await gate.promise;
      return SCRIPTED.fetchEvidence(...asked);
    },
  });
  const stage = await createStage(ctx, { funds: "1000" });
  const agent = await createCaller(stage);
  ids = [];
  for (let count = 0; count < 3; count++) ids.push(warrantIn(await open(stage, agent)).id);
  running = ids.map((id) => verify(stage, agent, id));
  await until("all are being verified", () => states().every((state) => state === "verifying"));
});
afterEach(async () => {
  gate.resolve();
  await Promise.all(running);
  await ctx.close();
});

const states = () => ids.map((id) => ctx.reader.warrants.find(id)?.state as string);

test.each([
  ["at start", recoverAtStart],
  ["while running", recoverOverdueChecks],
])("%s, one that cannot be undone is reported, and the others are undone", async (_, recover) => {
  const broken = failingOn(ctx, new Set([ids[1]!]));
  ctx.clock.now += CHECK_LEASE_MS;
  const reported: string[] = [];
  const onFault = (error: unknown, warrantId: string) => reported.push(`${warrantId}: ${error}`);
  expect(await recover(broken, onFault)).toBe(2);
  expect(reported).toEqual([`${ids[1]}: Error: broken`]);
  expect(states()).toEqual(["held", "verifying", "held"]);
  expect(await recover(ctx, onFault)).toBe(1);
});

test("while the server runs, a check within its lease is left alone", async () => {
  ctx.clock.now += CHECK_LEASE_MS - 1;
  expect(await recoverOverdueChecks(ctx, () => {})).toBe(0);
  expect(states()).toEqual(["verifying", "verifying", "verifying"]);
});
