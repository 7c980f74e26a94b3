import { afterEach, beforeEach, describe, expect, setSystemTime, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { compileSchema } from "../../../src/core/clauses/schema.ts";
import type { KeyCaller, Mode } from "../../../src/core/roles.ts";
import { createWebhookSender } from "../../../src/platform/webhook-sender.ts";
import { benchSchemas } from "../../../src/resources/bench-schemas.ts";
import { setAgentStatus } from "../../../src/services/admin/agents.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { createWebhook, type NewWebhook } from "../../../src/services/admin/webhooks.ts";
import type { Context } from "../../../src/services/context.ts";
import {
  claimDeliveries,
  type DeliveryReport,
  runDeliveries,
} from "../../../src/services/webhooks/deliver.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { noFault } from "../../support/no-fault.ts";
import { createJudge, type Receiver, startReceiver } from "../../support/receiver.ts";
import {
  ALL_PASS,
  createCaller,
  createStage,
  must,
  open,
  SCRIPTED,
  type Stage,
  settle,
  verify,
  warrantIn,
} from "../../support/stage.ts";

/** How events are delivered (docs/webhooks, "Webhooks"). The clock stands still until a test moves it. */

let ctx: TestContext;
let receiver: Receiver;
let stage: Stage;
let key: KeyCaller;
beforeEach(async () => {
  receiver = startReceiver();
  const sender = createWebhookSender({ allowNetworks: ["127.0.0.0/8"], timeoutMs: 2_000 });
  ctx = createTestContext({ ...SCRIPTED, sendWebhook: sender.send });
  stage = await createStage(ctx, { funds: "90071992547409930" });
  key = await createCaller(stage);
});
afterEach(async () => {
  receiver.stop();
  await ctx.deliverySlots.close();
  await ctx.close();
});

const endpoint = (path = "/", events: readonly string[] = [], of = stage): Promise<NewWebhook> =>
  createWebhook(ctx, MACHINE, {
    organisation_id: of.organisationId,
    mode: of.mode,
    url: receiver.url(path),
    events,
  }).then(must);

const faults: unknown[] = [];
const run = async (): Promise<DeliveryReport> => {
  faults.length = 0;
  const report = await runDeliveries(ctx, (error) => faults.push(error));
  expect(faults).toEqual([]);
  return report;
};
/** Runs until nothing is due. */
async function runAll(): Promise<void> {
  while ((await run()).attempted > 0);
}

const openOne = async (input = {}): Promise<string> => warrantIn(await open(stage, key, input)).id;
const typesAt = (path: string): readonly string[] =>
  receiver.received.filter((one) => one.path === path).map(({ body }) => body.type);
const statusOf = (id: string) => ctx.reader.deliveries.get(id);
const recent = () => ctx.reader.deliveries.list(stage, 50);

describe("what arrives", () => {
  test("is signed, has every header, and carries the trace payload with amounts as digit strings", async () => {
    const { secret } = await endpoint();
    const judge = createJudge(secret);
    // Above what a double holds exactly; and more bytes than characters.
    const id = await openOne({ amount: "9007199254740993", payee: "Łódź ☂" });
    await runAll();
    const [one] = receiver.received;
    expect(receiver.received).toHaveLength(1);
    expect(judge(one!, ctx.clock.now)).toBe("accepted");
    expect(one!.headers.get("content-type")).toBe("application/json");
    expect(one!.headers.get("service-event")).toBe("warrant.opened");
    expect(one!.attempt).toBe(1);
    const [entry] = ctx.reader.trace.of(id);
    expect(one!.body).toEqual({
      id: entry!.event!.id,
      object: "event",
      type: "warrant.opened",
      mode: "live",
      created_at: new Date(ctx.clock.now).toISOString(),
      data: JSON.parse(entry!.payload),
    });
    expect(one!.body.data.amount).toBe("9007199254740993");
    expect(compileSchema(benchSchemas["holdfast.event"]!)(one!.body)).toBe(true);
    expect(statusOf(one!.delivery)).toMatchObject({
      status: "delivered",
      attempts: 1,
      responseCode: 200,
      responseStart: "ok",
      claimedUntil: null,
      nextAttemptAt: null,
    });
  });

  test("is refused by a receiver where it was tampered with, is stale or replayed", async () => {
    const { secret } = await endpoint();
    await openOne();
    await runAll();
    const [one] = receiver.received;
    const judge = createJudge(secret);
    const { now } = ctx.clock;
    expect(judge({ ...one!, raw: one!.raw.replace('"100"', '"900"') }, now)).toBe("forged");
    expect(judge(one!, now + 301_000)).toBe("stale");
    expect(judge(one!, now - 302_000)).toBe("stale");
    expect(createJudge(`${secret}x`)(one!, now)).toBe("forged");
    expect(judge(one!, now + 299_000)).toBe("accepted");
    expect(judge(one!, now)).toBe("replayed");
  });

  test("is verified by the library of Standard Webhooks, under the event's id", async () => {
    const { secret } = await endpoint();
    await openOne();
    await runAll();
    const [one] = receiver.received;
    setSystemTime(ctx.clock.now);
    try {
      const headers = Object.fromEntries(one!.headers);
      expect(new Webhook(secret).verify(one!.raw, headers)).toEqual(one!.body);
      expect(headers["webhook-id"]).toBe(one!.body.id);
      expect(() => new Webhook(secret).verify(`${one!.raw} `, headers)).toThrow("No matching signature");
      setSystemTime(ctx.clock.now + 301_000);
      expect(() => new Webhook(secret).verify(one!.raw, headers)).toThrow("too old");
    } finally {
      setSystemTime();
    }
  });

  test("is signed anew at each attempt, the body the same", async () => {
    const { secret } = await endpoint();
    receiver.answer(() => new Response("no", { status: 500 }));
    await openOne();
    await run();
    ctx.clock.now += 400_000;
    await run();
    const [first, second] = receiver.received;
    expect([first!.attempt, second!.attempt]).toEqual([1, 2]);
    expect(second!.raw).toBe(first!.raw);
    expect(second!.delivery).toBe(first!.delivery);
    const judge = createJudge(secret);
    expect(judge(first!, ctx.clock.now)).toBe("stale");
    expect(judge(second!, ctx.clock.now)).toBe("accepted");
  });
});

describe("which events fire", () => {
  const FAILS = ["path_not_found", null, null, null] as const;

  test("a release: opened, verifying, released, in this order, with the share", async () => {
    await endpoint();
    const id = await openOne();
    must(await verify(stage, key, id, ALL_PASS));
    await runAll();
    expect(receiver.received.map(({ body }) => [body.type, body.data.to, body.data.released_bps])).toEqual([
      ["warrant.opened", "held", null],
      ["warrant.verifying", "verifying", null],
      ["warrant.released", "released", 10_000],
    ]);
    const checked = receiver.received[2]!.body.data;
    expect(checked).toMatchObject({ score: 10_000, reason_codes: [], actor: { kind: "system", id: null } });
  });

  test("a partial release carries the full amount and the share; a refund says so", async () => {
    await endpoint();
    const [partial, refunded] = [await openOne({ amount: "200" }), await openOne()];
    must(await settle(stage, stage.operator, partial, "partial_release", { releasedBps: 2_500 }));
    must(await settle(stage, stage.operator, refunded, "refund"));
    await runAll();
    const settled = receiver.received.filter(({ body }) => body.type !== "warrant.opened");
    expect(
      settled
        .map(({ body: { type, data } }) => [type, data.warrant_id, data.to, data.amount, data.released_bps])
        .sort(),
    ).toEqual([
      ["warrant.partially_released", partial, "partially_released", "200", 2_500],
      ["warrant.refunded", refunded, "refunded", "100", null],
    ]);
  });

  test("an expiry fires warrant.refunded, to expired", async () => {
    await endpoint();
    const id = await openOne();
    ctx.clock.now += 4_000_000;
    await verify(stage, key, id);
    await runAll();
    expect(receiver.received.map(({ body }) => [body.type, body.data.to])).toEqual([
      ["warrant.opened", "held"],
      ["warrant.refunded", "expired"],
    ]);
  });

  test("nothing for escalated, disputed, frozen, a thaw", async () => {
    await endpoint();
    const id = await openOne();
    must(await verify(stage, key, id, FAILS));
    const held = await openOne({ agent_id: key.agentId });
    must(await setAgentStatus(ctx, MACHINE, { agent_id: key.agentId, status: "killed" }));
    must(await setAgentStatus(ctx, MACHINE, { agent_id: key.agentId, status: "active" }));
    await runAll();
    const states = (warrantId: string) => ctx.reader.trace.of(warrantId).map(({ to }) => to as string);
    expect(states(id)).toEqual(["held", "verifying", "escalated"]);
    expect(states(held)).toEqual(["held", "frozen", "held"]);
    expect(typesAt("/").toSorted()).toEqual(["warrant.opened", "warrant.opened", "warrant.verifying"]);
    expect(recent()).toHaveLength(3);
  });

  test("each endpoint gets the events that it named; those of another mode or organisation get none", async () => {
    const sandbox = { ...stage, mode: "sandbox" as Mode };
    const other = await createStage(ctx);
    await endpoint("/all");
    await endpoint("/some", ["warrant.released", "warrant.refunded", "warrant.refunded"]);
    await endpoint("/sandbox", [], sandbox);
    await endpoint("/other", [], other);
    must(await verify(stage, key, await openOne(), ALL_PASS));
    await runAll();
    expect(typesAt("/all")).toEqual(["warrant.opened", "warrant.verifying", "warrant.released"]);
    expect(typesAt("/some")).toEqual(["warrant.released"]);
    expect([typesAt("/sandbox"), typesAt("/other")]).toEqual([[], []]);
    for (const { body } of receiver.received) expect([body.mode, body.data.mode]).toEqual(["live", "live"]);
  });
});

describe("attempts", () => {
  /** When each attempt came, in seconds after the first. */
  const times = (start: number, at: readonly number[]) => at.map((now) => (now - start) / 1_000);

  test("at 0, 1, 6 and 31 s, then exhausted, and never again", async () => {
    await endpoint();
    receiver.answer(() => new Response("no", { status: 503 }));
    await openOne();
    const start = ctx.clock.now;
    const at: number[] = [];
    const statuses: string[] = [];
    for (let tenth = 0; tenth <= 600; tenth++) {
      const { attempted } = await run();
      for (let count = 0; count < attempted; count++) {
        at.push(ctx.clock.now);
        statuses.push(recent()[0]!.status);
      }
      ctx.clock.now += 100;
    }
    expect(times(start, at)).toEqual([0, 1, 6, 31]);
    expect(statuses).toEqual(["failed", "failed", "failed", "exhausted"]);
    expect(receiver.received.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4]);
    ctx.clock.now += 86_400_000;
    expect(await run()).toEqual({ attempted: 0, delivered: 0, failed: 0, exhausted: 0, pending: 0 });
    expect(recent()[0]).toMatchObject({
      status: "exhausted",
      attempts: 4,
      responseCode: 503,
      nextAttemptAt: null,
    });
    // So that its admins hear of it.
    const { organisationId, mode } = stage;
    expect([...ctx.deliveryFailures.endpoints]).toEqual([[recent()[0]!.webhookId, { organisationId, mode }]]);
  });

  test("a report counts attempts by how they ended", async () => {
    await endpoint("/good");
    await endpoint("/bad");
    receiver.answer(({ path }) => new Response("", { status: path === "/good" ? 204 : 404 }));
    await openOne();
    expect(await run()).toEqual({ attempted: 2, delivered: 1, failed: 1, exhausted: 0, pending: 1 });
    ctx.clock.now += 1_000;
    expect(await run()).toEqual({ attempted: 1, delivered: 0, failed: 1, exhausted: 0, pending: 1 });
    ctx.clock.now += 5_000;
    await run();
    ctx.clock.now += 25_000;
    expect(await run()).toEqual({ attempted: 1, delivered: 0, failed: 0, exhausted: 1, pending: 0 });
  });

  test.each([200, 201, 204, 299])("%p is a success", async (status) => {
    await endpoint();
    receiver.answer(() => new Response(status === 204 ? null : "", { status }));
    await openOne();
    expect(await run()).toMatchObject({ attempted: 1, delivered: 1, pending: 0 });
  });

  test.each([301, 302, 307, 308, 400, 401, 410, 500, 503])(
    "%p is a failure, and nothing is followed",
    async (status) => {
      await endpoint();
      receiver.answer(() => new Response("", { status, headers: { Location: receiver.url("/elsewhere") } }));
      await openOne();
      expect(await run()).toMatchObject({ attempted: 1, failed: 1, pending: 1 });
      expect(receiver.received.map(({ path }) => path)).toEqual(["/"]);
      expect(recent()[0]).toMatchObject({ status: "failed", responseCode: status });
    },
  );

  test("of very many endpoints any may come first, and all have their turn", async () => {
    await endpoint();
    await openOne();
    const [one] = ctx.reader.webhooks.withWork(ctx.clock.now);
    const many = Array.from({ length: 600 }, (_, index) => ({ ...one!, id: String(index) }));
    const asked: number[] = [];
    const free = ({ id }: { readonly id: string }): number => {
      asked.push(Number(id));
      return 0;
    };
    const crowded: Context = {
      ...ctx,
      deliverySlots: { ...ctx.deliverySlots, free },
      store: {
        ...ctx.store,
        read: (use) =>
          ctx.store.read((reader) =>
            use({ ...reader, webhooks: { ...reader.webhooks, withWork: async () => many } }),
          ),
      },
    };
    const firsts: number[] = [];
    for (let count = 0; count < 100; count++) {
      await claimDeliveries(crowded, noFault);
      expect(new Set(asked).size).toBe(600);
      firsts.push(...asked.splice(0).slice(0, 1));
    }
    // By chance this fails once in 10^24 runs.
    expect(Math.max(...firsts)).toBeGreaterThan(256);
    expect(Math.min(...firsts)).toBeLessThan(256);
  });

  test("both runners at once never send one attempt twice", async () => {
    for (let count = 0; count < 3; count++) await endpoint(`/${count}`);
    receiver.answer(() => new Response("", { status: 500 }));
    for (let count = 0; count < 20; count++) await openOne({ amount: "1" });
    const start = ctx.clock.now;
    for (const second of [0, 1, 6, 31, 60]) {
      ctx.clock.now = start + second * 1_000;
      const reports = await Promise.all([run(), run(), run()]);
      for (const { attempted, failed, exhausted } of reports) expect(attempted).toBe(failed + exhausted);
    }
    const sent = receiver.received.map(({ delivery, attempt }) => `${delivery} ${attempt}`);
    expect(sent).toHaveLength(3 * 20 * 4);
    expect(new Set(sent).size).toBe(sent.length);
    expect(ctx.reader.deliveries.waiting()).toBe(0);
  });

  test("the first kilobyte of the response is stored, without a character cut in two", async () => {
    await endpoint();
    receiver.answer(() => new Response(`${"é".repeat(700)}`, { status: 500 }));
    await openOne();
    await run();
    expect(recent()[0]!.responseStart).toBe("é".repeat(512));
  });
});
