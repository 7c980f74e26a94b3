import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readConfig } from "../../../src/config.ts";
import { SECOND_MS } from "../../../src/core/time.ts";
import { EvaluatorBusy, EvaluatorUnavailable } from "../../../src/platform/evaluator-pool.ts";
import { CHECKS_MAX, createCheckLimiter } from "../../../src/services/warrants/check-limiter.ts";
import {
  CHECK_LEASE_MS,
  CHECK_RUN_MS_MAX,
  CHECK_WAIT_MS_MAX,
} from "../../../src/services/warrants/interrupt.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import {
  ALL_PASS,
  codeOf,
  createCaller,
  createStage,
  idempotencyOf,
  open,
  SCRIPTED,
  verify,
  warrantIn,
} from "../../support/stage.ts";

/** How many checks may run at once, and for how long. */

describe("the limiter", () => {
  test("admits 256 checks, 128 of one organisation, and others when some have ended", () => {
    const limiter = createCheckLimiter();
    const entered = (organisationId: string) =>
      Array.from({ length: CHECKS_MAX }, () => limiter.enter(organisationId)).filter(Boolean).length;
    expect([entered("a"), entered("b"), entered("c")]).toEqual([128, 128, 0]);
    limiter.leave("a");
    expect([entered("b"), entered("c"), entered("a")]).toEqual([0, 1, 0]);
    for (let count = 0; count < 127; count++) limiter.leave("a");
    expect([entered("c"), entered("a")]).toEqual([127, 0]);
  });
});

test("a check whose parts all take their longest time ends before its lease", () => {
  const longest = 60;
  expect(longest * SECOND_MS + CHECK_WAIT_MS_MAX + CHECK_RUN_MS_MAX).toBeLessThan(CHECK_LEASE_MS);
  expect(readConfig({ FETCH_SECONDS: `${longest}` }, {})).toMatchObject({ fetchSeconds: longest });
  expect(readConfig({ FETCH_SECONDS: `${longest + 1}` }, {})).toHaveProperty("refused");
});

describe("a verify", () => {
  let ctx: TestContext;
  let fault: Error | null;
  beforeEach(() => {
    fault = null;
    ctx = createTestContext({
      ...SCRIPTED,
      checkLimiter: createCheckLimiter(2),
      evaluate: async (request) => {
        if (fault) throw fault;
        return SCRIPTED.evaluate(request);
      },
    });
  });
  afterEach(() => ctx.close());

  const staged = async () => {
    const stage = await createStage(ctx, { funds: "1000" });
    const agent = await createCaller(stage);
    const opened = async () => warrantIn(await open(stage, agent)).id;
    return { stage, agent, opened };
  };
  const states = (id: string) => ctx.reader.trace.of(id).map(({ to }) => to);

  test("over the limit is refused, moves nothing and uses up no key; finished ones are replayed", async () => {
    const { stage, agent, opened } = await staged();
    const { organisationId } = stage;
    const [done, waiting] = [await opened(), await opened()];
    const [first, second] = [idempotencyOf(), idempotencyOf()];
    expect(codeOf(await verify(stage, agent, done, ALL_PASS, first))).toBe(200);

    expect(ctx.checkLimiter.enter(organisationId)).toBe(true);
    const refused = await verify(stage, agent, waiting, ALL_PASS, second);
    expect(refused).toEqual({
      refused: "rate_limit_exceeded",
      message: "Too many checks are running. Retry shortly with the same Idempotency-Key.",
    });
    expect(states(waiting)).toEqual(["held"]);
    expect(await verify(stage, agent, done, ALL_PASS, first)).toMatchObject({ status: 200, replayed: true });
    expect(codeOf(await verify(stage, agent, done))).toBe("illegal_transition");
    expect(codeOf(await verify(stage, agent, waiting, ALL_PASS, idempotencyOf(first.key, "another")))).toBe(
      "idempotency_key_reused",
    );

    // Another organisation has its own half.
    const other = await staged();
    expect(codeOf(await verify(other.stage, other.agent, await other.opened()))).toBe(200);
    ctx.checkLimiter.leave(organisationId);
    expect(codeOf(await verify(stage, agent, waiting, ALL_PASS, second))).toBe(200);
    expect(states(waiting)).toEqual(["held", "verifying", "released"]);
  });

  test("counts only until it ends, however it ends", async () => {
    const { stage, agent, opened } = await staged();
    const id = await opened();
    expect(codeOf(await verify(stage, agent, "wr_none"))).toBe("warrant_not_found");
    fault = new Error("gone");
    await expect(verify(stage, agent, id)).rejects.toThrow("gone");
    fault = null;
    expect(codeOf(await verify(stage, agent, id))).toBe(200);
    expect(codeOf(await verify(stage, agent, await opened()))).toBe(200);
  });

  test("that finds the evaluator busy is refused in the same way: the warrant is held again, its key free", async () => {
    const { stage, agent, opened } = await staged();
    const id = await opened();
    const idempotency = idempotencyOf();
    fault = new EvaluatorBusy("no child was free in time");
    const refused = await verify(stage, agent, id, ALL_PASS, idempotency);
    expect(refused).toMatchObject({
      refused: "rate_limit_exceeded",
      message: expect.stringMatching(/^Too many checks/),
    });
    expect(states(id)).toEqual(["held", "verifying", "held"]);
    expect(ctx.reader.checks.of(id)).toEqual([]);
    fault = null;
    expect(codeOf(await verify(stage, agent, id, ALL_PASS, idempotency))).toBe(200);
  });

  test("that finds an evaluator that does not start is a fault", async () => {
    const { stage, agent, opened } = await staged();
    const id = await opened();
    fault = new EvaluatorUnavailable("the evaluator's process does not start");
    const [outcome] = await Promise.allSettled([verify(stage, agent, id)]);
    expect(outcome).toEqual({ status: "rejected", reason: fault });
    expect(states(id)).toEqual(["held", "verifying", "held"]);
  });
});
