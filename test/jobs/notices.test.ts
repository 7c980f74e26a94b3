import { afterEach, beforeEach, expect, test } from "bun:test";
import type { JobState, Vitals } from "../../src/core/operation.ts";
import { noticesJob, troubleWatch } from "../../src/jobs/notices.ts";
import { tellOfLostEvents } from "../../src/services/notices/trouble.ts";
import { tellingBy } from "../support/channels.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { noFault } from "../support/no-fault.ts";
import { createStage, NONE_PASS, open, SCRIPTED, type Stage, verify, warrantIn } from "../support/stage.ts";
import { attemptsOf, createTelling } from "../support/telling.ts";

/** What admins hear of the service, and that one job does it all (docs/notices, "Notices"). */

const HOUR_MS = 3_600_000;

let ctx: TestContext;
let stage: Stage;
let telling: ReturnType<typeof createTelling>;
let vitals: Vitals;
beforeEach(async () => {
  telling = createTelling();
  ctx = createTestContext({ ...SCRIPTED, notices: telling.notices });
  stage = await createStage(ctx);
  vitals = {
    ...{ ledger: { readable: true, writable: true }, freeBytes: null, jobs: [], audit: null, clock: null },
    treasuries: [],
    ...{ database: null, replicas: [] },
  };
});
afterEach(() => ctx.close());

const watch = () =>
  troubleWatch(ctx, { monotonicNow: () => ctx.clock.now, vitals: async () => vitals, backupJob: "backup" });
async function subjects(): Promise<readonly string[]> {
  await telling.deliver(ctx);
  return [...new Set(telling.sent().map(({ subject }) => subject))];
}

test("what /readyz says is told where two looks in a row say it, once a day while it goes on", async () => {
  const look = watch();
  vitals = { ...vitals, freeBytes: 1 };
  await look();
  expect(await subjects()).toEqual([]);
  vitals = { ...vitals, freeBytes: null };
  await look();
  vitals = { ...vitals, freeBytes: 1 };
  await look();
  expect(await subjects()).toEqual([]);
  await look();
  expect(await subjects()).toEqual(["Holdfast needs attention: disk"]);
  let told = 0;
  for (let hour = 0; hour < 47; hour++) {
    ctx.clock.now += HOUR_MS;
    await look();
    told += (await subjects()).length;
  }
  expect(told).toBe(1);
});

test("a backup that failed is told at once", async () => {
  const look = watch();
  const job: JobState = {
    ...{ name: "backup", running: false, runs: 1, failures: 1, lastOutcome: "failed", lastStartedAt: null },
    ...{ lastEndedAt: null, lastDurationMs: null, lagMs: 0, quietMs: 0, stuck: false },
  };
  vitals = { ...vitals, jobs: [job] };
  await look();
  expect(await subjects()).toEqual(["Holdfast needs attention: backup"]);
});

test("one run plans and sends, also what another job wrote; a mail server that hangs keeps nobody", async () => {
  const hangs = Promise.withResolvers<void>();
  const notices = tellingBy({ email: (...mail) => hangs.promise.then(() => telling.email(...mail)) });
  const run = noticesJob(
    { ...ctx, notices },
    { monotonicNow: () => ctx.clock.now, agreedNow: ctx.now, onFault: noFault },
  );
  const { id } = warrantIn(await open(stage, stage.operator));
  await verify(stage, stage.operator, id, NONE_PASS);
  ctx.deliveryFailures.endpoints.set("whk_1", stage);
  await tellOfLostEvents(ctx);
  await run();
  await run();
  expect(telling.sent()).toEqual([]);
  hangs.resolve();
  await attemptsOf(notices);
  await run();
  await attemptsOf(notices);
  expect(new Set(telling.sent().map(({ subject }) => subject))).toEqual(
    new Set(["0.0001 USDC waits for your decision", "A webhook endpoint lost an event"]),
  );
});
