import { afterEach, beforeEach, expect, test } from "bun:test";
import fc from "fast-check";
import { isRefusal } from "../../../src/core/errors.ts";
import { AMOUNT_MAX } from "../../../src/core/money.ts";
import type { KeyCaller } from "../../../src/core/roles.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../src/core/time.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { createSession, type SessionInput } from "../../../src/services/admin/sessions.ts";
import { createTestContext, TEST_NOW, type TestContext } from "../../support/context.ts";
import {
  codeOf,
  createCaller,
  createStage,
  must,
  open,
  type Stage,
  settle,
  warrantIn,
} from "../../support/stage.ts";
import { openTestStore } from "../../support/store.ts";

/** What a session may hold within an hour and within a day (docs/sessions, "Windows and lists"). */

let ctx: TestContext;
let stage: Stage;
let caller: KeyCaller;
beforeEach(async () => {
  ctx = createTestContext();
  stage = await createStage(ctx, { funds: AMOUNT_MAX.toString() });
  caller = await createCaller(stage, { failure_budget: 1_000 });
});
afterEach(() => ctx.close());

const limit = async (input: Partial<SessionInput>) =>
  must(
    await createSession(ctx, MACHINE, {
      agent_id: caller.agentId,
      amount_ceiling: AMOUNT_MAX.toString(),
      expires_at: new Date(TEST_NOW + 365 * DAY_MS).toISOString(),
      ...input,
    }),
  );
const hold = (amount: bigint | number) =>
  open(stage, caller, { agent_id: caller.agentId, amount: `${amount}` });
const held = async (amount: bigint | number) => codeOf(await hold(amount));
const messageOf = async (amount: bigint | number) => {
  const answer = await hold(amount);
  return isRefusal(answer) ? answer.message : `held ${amount}`;
};
const REFUSED = "session_limit_exceeded";

test("a hold leaves the window after exactly an hour, or a day, and the message says when the next one fits", async () => {
  for (const [field, windowMs] of [
    ["hourly_max", HOUR_MS],
    ["daily_max", DAY_MS],
  ] as const) {
    await limit({ [field]: "100" });
    const begun = ctx.clock.now;
    for (const [after, amount] of [
      [0, 30],
      [7, 20],
      [60_001, 50],
    ] as const) {
      ctx.clock.now = begun + after;
      expect(await held(amount)).toBe(201);
    }
    const fits = (amount: number, at: number) =>
      expect(messageOf(amount)).resolves.toEndWith(
        `holds at most 100 in ${field === "hourly_max" ? "an hour" : "a day"}, 100 is used, and ${amount} was requested. It would pass at ${new Date(at).toISOString()}.`,
      );
    await fits(1, begun + windowMs);
    await fits(30, begun + windowMs);
    await fits(31, begun + 7 + windowMs);
    await fits(51, begun + 60_001 + windowMs);
    await fits(100, begun + 60_001 + windowMs);
    expect(await messageOf(101)).toEndWith("It would pass only under another session.");
    ctx.clock.now = begun + windowMs - 1;
    expect(await held(30)).toBe(REFUSED);
    ctx.clock.now++;
    expect(await held(31)).toBe(REFUSED);
    expect(await held(30)).toBe(201);
  }
});

test("what returns does not make room in a window, though it does under the ceiling", async () => {
  await limit({ amount_ceiling: "100", hourly_max: "150" });
  const { id } = warrantIn(await hold(100));
  must(await settle(stage, stage.operator, id, "refund"));
  expect(await held(51)).toBe(REFUSED);
  expect(await held(50)).toBe(201);
});

test("of opens at once, in one commit, exactly those that fit are held", async () => {
  await limit({ hourly_max: "1000", daily_max: "1700" });
  const all = await Promise.all(Array.from({ length: 40 }, () => held(99)));
  expect(all.filter((code) => code === 201)).toHaveLength(10);
  expect(all.filter((code) => code === REFUSED)).toHaveLength(30);
  // A smaller one takes what is left, and not more.
  expect(await Promise.all([held(10), held(10)])).toEqual([201, REFUSED]);
  ctx.clock.now += HOUR_MS;
  const later = await Promise.all(Array.from({ length: 40 }, () => held(100)));
  expect(later.filter((code) => code === 201)).toHaveLength(7);
});

test("sums are right beyond 64 bits: the largest amount again and again", async () => {
  await limit({ hourly_max: AMOUNT_MAX.toString() });
  for (let round = 0; round < 5; round++) {
    const { id } = warrantIn(await hold(AMOUNT_MAX));
    must(await settle(stage, stage.operator, id, "refund"));
    expect(await messageOf(1)).toContain(`${AMOUNT_MAX} is used, and 1 was requested. It would pass at `);
    ctx.clock.now += HOUR_MS;
  }
});

test("a clock that is set ahead, or back, makes no room", async () => {
  await limit({ hourly_max: "100", daily_max: "1000" });
  expect(await held(100)).toBe(201);
  for (const aheadMs of [DAY_MS, 60 * DAY_MS, -DAY_MS, 0]) {
    ctx.clock.aheadMs = aheadMs;
    expect(await held(1)).toBe(REFUSED);
  }
  ctx.clock.aheadMs = 60 * DAY_MS;
  ctx.clock.now += HOUR_MS - 1;
  expect(await held(1)).toBe(REFUSED);
  ctx.clock.now += 1;
  expect(await held(100)).toBe(201);
});

/** What an open answers after a restart, by a machine whose clock says this. */
async function restarted(now: number, amount: number) {
  // Its steady clock is of the new process alone.
  const store = openTestStore(ctx.folder, { now: () => now, steadyNow: () => 5 });
  const code = codeOf(
    await open({ ...stage, ctx: { ...ctx, now: () => now, store } }, caller, {
      agent_id: caller.agentId,
      amount: `${amount}`,
    }),
  );
  await store.close();
  return code;
}

test("a restart forgets nothing; a clock that is behind then makes no room either", async () => {
  await limit({ hourly_max: "100" });
  expect(await held(60)).toBe(201);
  expect(await restarted(TEST_NOW, 41)).toBe(REFUSED);
  expect(await restarted(TEST_NOW - 2 * DAY_MS, 41)).toBe(REFUSED);
  expect(await restarted(TEST_NOW - 2 * DAY_MS, 30)).toBe(201);
  expect(await restarted(TEST_NOW + HOUR_MS - 1, 11)).toBe(REFUSED);
  expect(await restarted(TEST_NOW + HOUR_MS, 101)).toBe(REFUSED);
  expect(await restarted(TEST_NOW + HOUR_MS, 100)).toBe(201);
});

test("after a restart the windows go on from the last hold, also where the clock had been set back before", async () => {
  await limit({ hourly_max: "100" });
  ctx.clock.aheadMs = -2 * DAY_MS;
  ctx.clock.now += 2 * HOUR_MS;
  expect(await held(60)).toBe(201);
  expect(await restarted(ctx.now(), 41)).toBe(REFUSED);
  expect(await restarted(ctx.now(), 40)).toBe(201);
});

test("a new session begins with empty windows", async () => {
  await limit({ hourly_max: "100" });
  expect(await held(100)).toBe(201);
  await limit({ hourly_max: "100" });
  expect(await held(100)).toBe(201);
  expect(await held(1)).toBe(REFUSED);
});

type Step =
  | { readonly wait: number }
  | { readonly hold: readonly number[] }
  | { readonly refund: number }
  | { readonly jump: number };

test("whatever is held, returned and waited for, and however the clock jumps: a window holds its sum at most, and no less is let in", async () => {
  const step: fc.Arbitrary<Step> = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        hold: fc.array(fc.integer({ min: 1, max: 120 }), { minLength: 1, maxLength: 5 }),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ wait: fc.constantFrom(1, 1_000, 19 * MINUTE_MS, HOUR_MS - 1, 7 * HOUR_MS) }),
    },
    { weight: 1, arbitrary: fc.record({ refund: fc.nat(50) }) },
    { weight: 1, arbitrary: fc.record({ jump: fc.constantFrom(-DAY_MS, 0, DAY_MS) }) },
  );
  const maxima = fc.record({
    hourly: fc.option(fc.integer({ min: 0, max: 300 })),
    daily: fc.option(fc.integer({ min: 0, max: 600 })),
  });
  let refusals = 0;
  await fc.assert(
    fc.asyncProperty(
      maxima,
      fc.array(step, { maxLength: 25, size: "max" }),
      async ({ hourly, daily }, steps) => {
        caller = await createCaller(stage);
        await limit({
          ...(hourly !== null && { hourly_max: `${hourly}` }),
          ...(daily !== null && { daily_max: `${daily}` }),
        });
        const holds: { id: string; at: number; amount: number }[] = [];
        const fits = (amount: number, max: number | null, windowMs: number) =>
          max === null ||
          holds.reduce((sum, one) => sum + (one.at > ctx.clock.now - windowMs ? one.amount : 0), amount) <=
            max;
        for (const next of steps) {
          if ("wait" in next) ctx.clock.now += next.wait;
          else if ("jump" in next) ctx.clock.aheadMs = next.jump;
          else if ("refund" in next) {
            const [one] = holds.slice(next.refund % (holds.length || 1));
            // A second refund of the same is refused, and changes nothing.
            if (one) await settle(stage, stage.operator, one.id, "refund");
          } else {
            const answers = await Promise.all(next.hold.map((amount) => hold(amount)));
            for (const [index, answer] of answers.entries()) {
              const amount = next.hold[index]!;
              const expected = fits(amount, hourly, HOUR_MS) && fits(amount, daily, DAY_MS);
              expect(codeOf(answer)).toBe(expected ? 201 : REFUSED);
              if (isRefusal(answer)) refusals++;
              else holds.push({ id: warrantIn(answer).id, at: ctx.clock.now, amount });
            }
          }
        }
      },
    ),
    { numRuns: 40 },
  );
  expect(refusals).toBeGreaterThan(0);
}, 30_000);
