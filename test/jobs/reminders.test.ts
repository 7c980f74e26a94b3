import { afterEach, beforeEach, expect, test } from "bun:test";
import { escalationReminders, type Warn } from "../../src/jobs/reminders.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import {
  createCaller,
  createStage,
  NONE_PASS,
  open,
  SCRIPTED,
  type Stage,
  settle,
  verify,
  warrantIn,
} from "../support/stage.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

let ctx: TestContext;
let stage: Stage;
let lines: Parameters<Warn>[] = [];
beforeEach(async () => {
  lines = [];
  ctx = createTestContext(SCRIPTED);
  stage = await createStage(ctx, { mode: "sandbox" });
});
afterEach(() => ctx.close());

/** The job as a start of the service makes it, given the time of the ledger's newest record. */
const reminders = (since = ctx.now()) =>
  escalationReminders(ctx, since, (...line) => {
    lines.push(line);
  });
/** The warrants of the reminders since the last call. */
const reminded = () => lines.splice(0).map(([, fields]) => fields.warrant_id);

async function escalated(): Promise<string> {
  const { id } = warrantIn(await open(stage, stage.operator));
  expect(warrantIn(await verify(stage, stage.operator, id, NONE_PASS)).state).toBe("escalated");
  return id;
}

test("an escalation is reminded of after a day, and then once a day", async () => {
  const id = await escalated();
  const run = reminders();
  ctx.clock.now += DAY_MS - 1;
  expect([await run(), reminded()]).toEqual([0, []]);
  ctx.clock.now += 1;
  expect([await run(), lines]).toEqual([
    1,
    [
      [
        "an escalation waits",
        {
          escalation_id: ctx.reader.escalations.list(stage, 1)[0]?.id ?? "",
          warrant_id: id,
          organisation_id: stage.organisationId,
          mode: "sandbox",
          status: "open",
          waiting_hours: 24,
        },
      ],
    ],
  ]);
  reminded();
  for (let hour = 1; hour < 24; hour++) {
    ctx.clock.now += HOUR_MS;
    expect([await run(), reminded()]).toEqual([0, []]);
  }
  ctx.clock.now += HOUR_MS;
  expect([await run(), reminded()]).toEqual([1, [id]]);
});

test("one that is disputed waits too; one that is decided does not", async () => {
  const [waits, decided] = [await escalated(), await escalated()];
  await settle(stage, stage.operator, decided, "refund");
  const run = reminders();
  ctx.clock.now += DAY_MS;
  await run();
  expect(reminded()).toEqual([waits]);
});

test("for the days that ended while the service was down there is one reminder", async () => {
  const id = await escalated();
  const lastSeenAt = ctx.now() + HOUR_MS;
  ctx.clock.now += 3 * DAY_MS + HOUR_MS;
  const run = reminders(lastSeenAt);
  expect([await run(), reminded(), await run()]).toEqual([1, [id], 0]);
});

test("a restart repeats no reminder", async () => {
  await escalated();
  ctx.clock.now += DAY_MS;
  await reminders(ctx.now() - HOUR_MS)();
  expect(reminded()).toHaveLength(1);
  ctx.clock.now += HOUR_MS;
  expect(await reminders(ctx.now() - HOUR_MS)()).toBe(0);
});

test("a clock that was set back and right again repeats no reminder", async () => {
  await escalated();
  const run = reminders();
  ctx.clock.now += DAY_MS;
  expect(await run()).toBe(1);
  ctx.clock.now -= HOUR_MS;
  expect(await run()).toBe(0);
  ctx.clock.now += HOUR_MS;
  expect(await run()).toBe(0);
});

test("of very many escalations the first are named, and one line says how many more there are", async () => {
  const agent = await createCaller(stage);
  const escalate = async () => {
    const { id } = warrantIn(await open(stage, agent));
    await verify(stage, agent, id, NONE_PASS);
  };
  // The limit of checks that run at once.
  for (const length of [100, 101]) await Promise.all(Array.from({ length }, escalate));
  expect(ctx.reader.escalations.oldestWaitingAt()).toBe(ctx.now());
  const run = reminders();
  ctx.clock.now += DAY_MS;
  expect(await run()).toBe(201);
  expect(new Set(lines.slice(0, 200).map(([, { escalation_id }]) => escalation_id)).size).toBe(200);
  expect(lines.slice(200)).toEqual([["more escalations wait", { more: 1 }]]);
});
