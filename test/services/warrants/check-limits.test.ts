import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readConfig } from "../../../src/config.ts";
import { UndoneFault } from "../../../src/core/errors.ts";
import { SECOND_MS } from "../../../src/core/time.ts";
import { EvaluatorBusy, EvaluatorUnavailable } from "../../../src/platform/evaluator-pool.ts";
import { createPlaces, type Place } from "../../../src/platform/places.ts";
import {
  CHECK_LEASE_MS,
  CHECK_RUN_MS_MAX,
  CHECK_WAIT_MS_MAX,
} from "../../../src/services/warrants/interrupt.ts";
import { verifyWarrant } from "../../../src/services/warrants/verify.ts";
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
import { until } from "../../support/until.ts";

/** How many checks may run at once, and for how long. */

test("a check whose parts all take their longest time ends before its lease", () => {
  const longest = 60;
  expect(longest * SECOND_MS + CHECK_WAIT_MS_MAX + CHECK_RUN_MS_MAX).toBeLessThan(CHECK_LEASE_MS);
  expect(readConfig({ FETCH_SECONDS: `${longest}` }, {})).toMatchObject({ fetchSeconds: longest });
  expect(readConfig({ FETCH_SECONDS: `${longest + 1}` }, {})).toHaveProperty("refused");
});

describe("a verify", () => {
  let ctx: TestContext;
  let fault: Error | null;
  /** A fetch waits at this gate until the test opens it. */
  let gate: PromiseWithResolvers<void>;
  const make = (waitMsMax: number) => {
    gate = Promise.withResolvers();
    gate.resolve();
    fault = null;
    ctx = createTestContext({
      ...SCRIPTED,
      // One organisation may have one of them.
      places: createPlaces({ max: 2, waitMsMax }),
      fetchEvidence: async (...asked) => {
        await gate.promise;
        return SCRIPTED.fetchEvidence(...asked);
      },
      evaluate: async (request) => {
        if (fault) throw fault;
        return SCRIPTED.evaluate(request);
      },
    });
  };
  beforeEach(() => make(1));
  afterEach(() => ctx.close());

  const staged = async () => {
    const stage = await createStage(ctx, { funds: "1000" });
    const agent = await createCaller(stage);
    const opened = async () => warrantIn(await open(stage, agent)).id;
    return { stage, agent, opened };
  };
  const states = (id: string) => ctx.reader.trace.of(id).map(({ to }) => to);
  const placeOf = (stage: { readonly organisationId: string }): Place => {
    const place = ctx.places.take({ organisationId: stage.organisationId, mode: "live" });
    if (!place) throw new Error("no place is free");
    return place;
  };
  const REFUSED = {
    refused: "rate_limit_exceeded",
    message: "Too many checks are running. Retry shortly with the same Idempotency-Key.",
  } as const;

  test("that gets no place in time is refused, moves nothing and uses up no key; finished ones are replayed", async () => {
    const { stage, agent, opened } = await staged();
    const [done, waiting] = [await opened(), await opened()];
    const [first, second] = [idempotencyOf(), idempotencyOf()];
    expect(codeOf(await verify(stage, agent, done, ALL_PASS, first))).toBe(200);

    const place = placeOf(stage);
    expect(await verify(stage, agent, waiting, ALL_PASS, second)).toEqual(REFUSED);
    expect(states(waiting)).toEqual(["held"]);
    expect(ctx.reader.warrants.find(waiting)?.version).toBe(1);
    expect(await verify(stage, agent, done, ALL_PASS, first)).toMatchObject({ status: 200, replayed: true });
    expect(codeOf(await verify(stage, agent, done))).toBe("illegal_transition");
    expect(codeOf(await verify(stage, agent, waiting, ALL_PASS, idempotencyOf(first.key, "another")))).toBe(
      "idempotency_key_reused",
    );

    // Another organisation has its own half.
    const other = await staged();
    expect(codeOf(await verify(other.stage, other.agent, await other.opened()))).toBe(200);
    place.leave();
    expect(codeOf(await verify(stage, agent, waiting, ALL_PASS, second))).toBe(200);
    expect(states(waiting)).toEqual(["held", "verifying", "released"]);
  });

  test("that waits holds nothing: its warrant moves, and its key is free; with a place it is decided anew", async () => {
    await ctx.close();
    make(60 * SECOND_MS);
    const { stage, agent, opened } = await staged();
    const [id, other] = [await opened(), await opened()];
    const [first, second] = [idempotencyOf(), idempotencyOf()];
    const place = placeOf(stage);
    const waiting = [
      verify(stage, agent, id, ALL_PASS, first),
      verify(stage, agent, other, ALL_PASS, second),
    ];
    await until("both wait", () => ctx.places.figures("live").waiting === 2);
    // Nobody has claimed the key: the same request waits beside it.
    const again = verify(stage, agent, other, ALL_PASS, second);
    await until("it waits too", () => ctx.places.figures("live").waiting === 3);
    expect(codeOf(await open(stage, agent))).toBe(201);
    ctx.clock.now += 3_600_000;
    place.leave();
    expect((await Promise.all(waiting)).map(codeOf)).toEqual(["illegal_transition", "illegal_transition"]);
    expect(codeOf(await again)).toBe("illegal_transition");
    expect([states(id), states(other)]).toEqual([
      ["held", "expired"],
      ["held", "expired"],
    ]);
  });

  test("whose caller has gone waits no more, and begins nothing", async () => {
    await ctx.close();
    make(60 * SECOND_MS);
    const { stage, agent, opened } = await staged();
    const id = await opened();
    const place = placeOf(stage);
    const caller = new AbortController();
    const input = { warrantId: id, sourceUrl: "http://source.example/", ifMatch: null };
    const waiting = verifyWarrant(ctx, agent, input, idempotencyOf(), caller.signal);
    await until("it waits", () => ctx.places.figures("live").waiting === 1);
    caller.abort();
    expect(await waiting).toEqual(REFUSED);
    place.leave();
    expect([states(id), ctx.places.figures("live")]).toEqual([["held"], { taken: 0, waiting: 0 }]);
  });

  test("keeps its place until it ends, however it ends", async () => {
    const { stage, agent, opened } = await staged();
    const id = await opened();
    expect(codeOf(await verify(stage, agent, "wr_none"))).toBe("warrant_not_found");
    fault = new Error("gone");
    await expect(verify(stage, agent, id)).rejects.toThrow(UndoneFault);
    fault = null;
    gate = Promise.withResolvers();
    const running = verify(stage, agent, id);
    await until("its check has begun", () => states(id).at(-1) === "verifying");
    expect(ctx.places.figures("live").taken).toBe(1);
    expect(await verify(stage, agent, await opened())).toEqual(REFUSED);
    gate.resolve();
    expect(codeOf(await running)).toBe(200);
    expect(codeOf(await verify(stage, agent, await opened()))).toBe(200);
    expect(ctx.places.figures("live").taken).toBe(0);
  });

  test("that finds the evaluator busy is refused, and says that the warrant is held again; its key is free", async () => {
    const { stage, agent, opened } = await staged();
    const id = await opened();
    const idempotency = idempotencyOf();
    fault = new EvaluatorBusy("no child was free in time");
    expect(await verify(stage, agent, id, ALL_PASS, idempotency)).toEqual({
      refused: "rate_limit_exceeded",
      message: expect.stringContaining("the warrant is held again, two versions later"),
    });
    expect(states(id)).toEqual(["held", "verifying", "held"]);
    expect(ctx.reader.checks.of(id)).toEqual([]);
    fault = null;
    expect(codeOf(await verify(stage, agent, id, ALL_PASS, idempotency))).toBe(200);
  });

  test("that no child began to evaluate is a fault that was undone: no verdict, and the key is free", async () => {
    const { stage, agent, opened } = await staged();
    const id = await opened();
    const idempotency = idempotencyOf();
    fault = new EvaluatorUnavailable("no child began to evaluate");
    const [outcome] = await Promise.allSettled([verify(stage, agent, id, ALL_PASS, idempotency)]);
    expect(outcome).toMatchObject({ status: "rejected", reason: { cause: fault } });
    expect(outcome?.status === "rejected" && outcome.reason).toBeInstanceOf(UndoneFault);
    expect(states(id)).toEqual(["held", "verifying", "held"]);
    expect(ctx.reader.checks.of(id)).toEqual([]);
    fault = null;
    expect(codeOf(await verify(stage, agent, id, ALL_PASS, idempotency))).toBe(200);
  });
});
