import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createIds } from "../../../src/core/ids.ts";
import type { KeyCaller } from "../../../src/core/roles.ts";
import { deliverWebhooks } from "../../../src/jobs/webhooks.ts";
import { createVault } from "../../../src/platform/vault.ts";
import { createWebhookSender, type WebhookSenderOptions } from "../../../src/platform/webhook-sender.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { recoverWebhook } from "../../../src/services/admin/deliveries.ts";
import { createWebhook, disableWebhook, type NewWebhook } from "../../../src/services/admin/webhooks.ts";
import type { Context } from "../../../src/services/context.ts";
import { ledgerFigures } from "../../../src/services/figures.ts";
import {
  claimDeliveries,
  type DeliveryReport,
  runDeliveries,
} from "../../../src/services/webhooks/deliver.ts";
import { recoverDeliveries, recoverDeliveriesAtStart } from "../../../src/services/webhooks/recover.ts";
import { createDeliverySlots } from "../../../src/services/webhooks/slots.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { withCommands } from "../../support/failing-commands.ts";
import { noFault } from "../../support/no-fault.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";
import {
  createCaller,
  createStage,
  must,
  open,
  SCRIPTED,
  type Stage,
  verify,
  warrantIn,
} from "../../support/stage.ts";
import { until } from "../../support/until.ts";

/** Slow and dead endpoints, attempts that were cut off, addresses that change, lost keys. The clock stands still. */

let receiver: Receiver;
const opened: TestContext[] = [];
beforeEach(() => {
  receiver = startReceiver();
});
afterEach(async () => {
  receiver.stop();
  for (const ctx of opened.splice(0)) {
    await ctx.deliverySlots.close();
    await ctx.close();
  }
});

type Scene = { readonly ctx: TestContext; readonly stage: Stage; readonly key: KeyCaller };

async function scene(
  options: Partial<WebhookSenderOptions> = {},
  overrides: Partial<Context> = {},
): Promise<Scene> {
  const sender = createWebhookSender({ allowNetworks: ["127.0.0.0/8"], timeoutMs: 2_000, ...options });
  const ctx = createTestContext({ ...SCRIPTED, sendWebhook: sender.send, ...overrides });
  opened.push(ctx);
  const stage = await createStage(ctx);
  return { ctx, stage, key: await createCaller(stage) };
}

const endpoint = ({ ctx, stage }: Scene, url: string): Promise<NewWebhook> =>
  createWebhook(ctx, MACHINE, { organisation_id: stage.organisationId, mode: stage.mode, url }).then(must);
const openOne = async ({ stage, key }: Scene): Promise<string> =>
  warrantIn(await open(stage, key, { amount: "1" })).id;

const run = ({ ctx }: Scene, onFault: (error: unknown) => void = noFault): Promise<DeliveryReport> =>
  runDeliveries(ctx, onFault);
const all = ({ ctx, stage }: Scene) => ctx.reader.deliveries.list(stage, 1_000);
const only = (at: Scene) => {
  const [one, other] = all(at);
  if (!one || other) throw new Error("one delivery was expected");
  return one;
};

/** An endpoint whose answers wait until the test lets them go. */
function gate() {
  const open_ = Promise.withResolvers<void>();
  return { passed: open_.promise, open: open_.resolve };
}

describe("a slow endpoint", () => {
  test("delays nobody else: the job does not wait for it, and the others' deliveries go on", async () => {
    const at = await scene();
    await endpoint(at, receiver.url("/slow"));
    await endpoint(at, receiver.url("/quick"));
    const { passed, open: letGo } = gate();
    receiver.answer(async ({ path }) => {
      if (path === "/slow") await passed;
      return new Response("ok");
    });
    for (let count = 0; count < 30; count++) await openOne(at);
    const quick = () => receiver.received.filter(({ path }) => path === "/quick").length;
    const slow = () => receiver.received.filter(({ path }) => path === "/slow").length;
    // The job's run ends though eight attempts hang; the quick endpoint gets all of its thirty meanwhile.
    await deliverWebhooks(at.ctx, noFault);
    await receiver.whenReceived(30 + 8);
    expect([quick(), slow()]).toEqual([30, 8]);
    await deliverWebhooks(at.ctx, noFault);
    expect(slow()).toBe(8);
    letGo();
    await run(at);
    expect([quick(), slow()]).toEqual([30, 30]);
    expect(all(at).every(({ status, attempts }) => status === "delivered" && attempts === 1)).toBe(true);
  });

  test("many endpoints that hang hold a few slots each, and the next endpoint still gets one", async () => {
    const { passed, open: letGo } = gate();
    const sent: string[] = [];
    const at = await scene(
      {},
      {
        async sendWebhook({ url }) {
          sent.push(url);
          if (url.includes("hangs")) await passed;
          return { code: 200, responseStart: "", durationMs: 1 };
        },
      },
    );
    for (let count = 0; count < 20; count++) await endpoint(at, `https://hangs.example/${count}`);
    for (let count = 0; count < 10; count++) await openOne(at);
    await claimDeliveries(at.ctx, noFault);
    const hanging = at.ctx.deliverySlots.underWay().length;
    expect(hanging).toBeWithin(20, 64);
    await endpoint(at, "https://quick.example/");
    await openOne(at);
    await claimDeliveries(at.ctx, noFault);
    await until("the quick one is sent", () => sent.some((url) => url.includes("quick")));
    letGo();
    await run(at);
    expect(all(at).every(({ status }) => status === "delivered")).toBe(true);
  });

  test("two runs at the same time take no more slots together than one run may", async () => {
    const { passed, open: letGo } = gate();
    const sendWebhook = async () => {
      await passed;
      return { code: 200, responseStart: "", durationMs: 1 };
    };
    const at = await scene({}, { sendWebhook, deliverySlots: createDeliverySlots(8, 4) });
    for (let count = 0; count < 20; count++) await endpoint(at, `https://hangs.example/${count}`);
    for (let count = 0; count < 3; count++) await openOne(at);
    await Promise.all(Array.from({ length: 10 }, () => claimDeliveries(at.ctx, noFault)));
    const hanging = at.ctx.deliverySlots.underWay().length;
    letGo();
    // Endpoints that are not known to be quick get at most three quarters of the slots.
    expect(hanging).toBeWithin(1, 7);
    for (let runs = 0; runs < 20; runs++) await run(at);
    expect(at.ctx.reader.deliveries.waiting()).toBe(0);
  });

  test("130 endpoints that hang, in two organisations, hold up no quick one, of theirs or of another", async () => {
    const { passed, open: letGo } = gate();
    let hangs = false;
    const sent: string[] = [];
    const at = await scene(
      {},
      {
        async sendWebhook({ url }) {
          sent.push(new URL(url).pathname);
          if (hangs && url.includes("dead")) await passed;
          return { code: 200, responseStart: "", durationMs: 1 };
        },
      },
    );
    const others = { ...at, stage: await createStage(at.ctx) };
    const homes = [at, { ...others, key: await createCaller(others.stage) }];
    const openAt = (scenes: readonly Scene[]) => Promise.all(scenes.map(openOne));
    for (const home of homes) await endpoint(home, "https://quick.example/known");
    await openAt(homes);
    await run(at);
    for (const home of homes) {
      for (let count = 0; count < 65; count++) await endpoint(home, `https://dead.example/${count}`);
    }
    hangs = true;
    for (let count = 0; count < 3; count++) await openAt(homes);
    sent.length = 0;
    const third = { ...at, stage: await createStage(at.ctx) };
    await endpoint(third, "https://quick.example/new");
    await openOne({ ...third, key: await createCaller(third.stage) });
    // Nothing that hangs ends meanwhile.
    for (let runs = 0; runs < 20; runs++) {
      await claimDeliveries(at.ctx, noFault);
      await new Promise(setImmediate);
    }
    const count = (path: string): number => sent.filter((one) => one === path).length;
    const hanging = at.ctx.deliverySlots.underWay().length;
    letGo();
    expect([count("/known"), count("/new")]).toEqual([2 * 3, 1]);
    expect(hanging).toBeWithin(64, 97);
    for (let runs = 0; runs < 10; runs++) await run(at);
    expect(at.ctx.reader.deliveries.waiting()).toBe(0);
  });

  describe("slots", () => {
    let slots: ReturnType<typeof createDeliverySlots>;
    let next = 0;
    /** Takes every slot that the endpoint may have. Answers how to free one of them, or all. */
    function fill(id: string, organisationId: string, again = false): (() => void)[] {
      return Array.from({ length: slots.free({ id, organisationId }, again) }, () => {
        const { promise, resolve } = Promise.withResolvers<void>();
        slots.hold({ id: `whd_${next++}`, webhookId: id, organisationId }, promise);
        return resolve;
      });
    }
    const known = (durationMs: number, ...ids: string[]) => {
      for (const id of ids) slots.took(id, durationMs);
    };
    /** How many slots each of so many endpoints of an organisation gets, one after the other. */
    const fillAll = (organisationId: string, count: number): number[] =>
      Array.from({ length: count }, (_, index) => fill(`${organisationId}${index}`, organisationId).length);
    beforeEach(() => {
      slots = createDeliverySlots(32, 4);
    });

    test("an endpoint alone gets as many as its limit; when they are freed, others may have them", async () => {
      const ends = fill("a", "o");
      expect([ends.length, slots.free({ id: "a", organisationId: "o" })]).toEqual([4, 0]);
      expect(slots.taken("a").size).toBe(4);
      ends[0]?.();
      await Promise.resolve();
      expect([slots.taken("a").size, slots.free({ id: "a", organisationId: "o" }, true)]).toEqual([3, 1]);
    });

    test("the first comes from the whole part, the others from its beginning", () => {
      expect(fillAll("o", 10)).toEqual([4, 2, 1, 1, 1, 1, 1, 1, 0, 0]);
    });

    test("an organisation takes no more slots than it leaves, so each next one finds some", () => {
      const counts = ["o", "p", "q", "r"].map((one) => fillAll(one, 40).reduce((sum, got) => sum + got));
      expect(counts).toEqual([12, 6, 3, 2]);
      expect(slots.underWay()).toHaveLength(23);
    });

    test("a quarter is for those that are known to be quick, of the same organisation too", () => {
      for (const organisation of ["o", "p", "q", "r", "s"]) fillAll(organisation, 40);
      expect(slots.underWay()).toHaveLength(24);
      known(2_000, "quick");
      expect(slots.free({ id: "new", organisationId: "o" })).toBe(0);
      expect(slots.free({ id: "quick", organisationId: "o" })).toBe(1);
    });

    test("endpoints known to be slow leave a quarter of the slots to new ones, and may become quick again", () => {
      const organisations = ["o", "p", "q", "r", "s"];
      for (const one of organisations)
        known(2_001, ...Array.from({ length: 40 }, (_, index) => `${one}${index}`));
      for (const one of organisations) fillAll(one, 40);
      expect(slots.underWay()).toHaveLength(16);
      const slow = { id: "o39", organisationId: "o" };
      expect([slots.free(slow), slots.free({ id: "new", organisationId: "o" })]).toEqual([0, 1]);
      known(5, slow.id);
      expect(slots.free(slow)).toBe(4);
    });

    test("where others may wait, an endpoint does not take again the slot that it has just left", async () => {
      fillAll("o", 7);
      const [end] = fill("last", "o");
      end?.();
      await Promise.resolve();
      const last = { id: "last", organisationId: "o" };
      expect([slots.free(last, true), slots.free(last)]).toEqual([0, 1]);
    });

    test("after the close there are no slots, and the close waits for attempts under way", async () => {
      const ends = fill("a", "o");
      const closed = slots.close();
      expect(slots.free({ id: "b", organisationId: "o" })).toBe(0);
      for (const end of ends) end();
      await closed;
      expect(slots.underWay()).toEqual([]);
    });
  });
});

describe("order", () => {
  test("a warrant's later event waits for the first attempt of its earlier one, and not for its second", async () => {
    const at = await scene();
    await endpoint(at, receiver.url());
    const { passed, open: letGo } = gate();
    receiver.answer(async ({ body }) => {
      if (body.type === "warrant.opened") await passed;
      return new Response("", { status: body.type === "warrant.opened" ? 500 : 200 });
    });
    const id = await openOne(at);
    must(await verify(at.stage, at.key, id));
    await deliverWebhooks(at.ctx, noFault);
    await receiver.whenReceived(1);
    await deliverWebhooks(at.ctx, noFault);
    expect(receiver.received.map(({ body }) => body.type)).toEqual(["warrant.opened"]);
    letGo();
    await run(at);
    await run(at);
    expect(receiver.received.map(({ body, attempt }) => [body.type, attempt])).toEqual([
      ["warrant.opened", 1],
      ["warrant.verifying", 1],
      ["warrant.released", 1],
    ]);
    at.ctx.clock.now += 1_000;
    await run(at);
    expect(receiver.received.at(-1)).toMatchObject({ attempt: 2 });
  });
});

describe("an attempt that was cut off", () => {
  /** Leaves one attempt under way, as a crash does: its end is never recorded. */
  async function cutOff(): Promise<Scene> {
    const at = await scene(
      {},
      { sendWebhook: () => new Promise(() => {}), deliverySlots: createDeliverySlots() },
    );
    await endpoint(at, receiver.url());
    await openOne(at);
    await claimDeliveries(at.ctx, noFault);
    expect(only(at)).toMatchObject({ status: "pending", attempts: 1, nextAttemptAt: null });
    return at;
  }
  /** Starts the next process, in which nothing is under way. */
  const restarted = (at: Scene): Scene => {
    const sender = createWebhookSender({ allowNetworks: ["127.0.0.0/8"], timeoutMs: 2_000 });
    const slots = createDeliverySlots();
    return { ...at, ctx: { ...at.ctx, sendWebhook: sender.send, deliverySlots: slots } };
  };
  /** Forgets attempts that never end, so that `afterEach` does not wait for them. */
  const forget = (at: Scene): void => void Object.assign(at.ctx, { deliverySlots: createDeliverySlots() });

  test("counts, and the schedule goes on after a start: 1, then 5, then 25 s", async () => {
    const before = await cutOff();
    const at = restarted(before);
    forget(before);
    receiver.answer(() => new Response("", { status: 500 }));
    at.ctx.clock.now += 700;
    expect(await run(at)).toMatchObject({ attempted: 0, pending: 1 });
    expect(await recoverDeliveriesAtStart(at.ctx)).toBe(1);
    expect(await recoverDeliveriesAtStart(at.ctx)).toBe(0);
    const start = at.ctx.clock.now;
    expect(only(at)).toMatchObject({
      status: "failed",
      attempts: 1,
      responseCode: null,
      nextAttemptAt: start + 1_000,
    });
    const came: number[] = [];
    for (let tenth = 0; tenth < 400; tenth++) {
      const { attempted } = await run(at);
      if (attempted > 0) came.push((at.ctx.clock.now - start) / 1_000);
      at.ctx.clock.now += 100;
    }
    expect(came).toEqual([1, 6, 31]);
    expect(receiver.received.map(({ attempt }) => attempt)).toEqual([2, 3, 4]);
    expect(only(at)).toMatchObject({ status: "exhausted", attempts: 4 });
    expect((await ledgerFigures(at.ctx)).deliveries).toMatchObject({ exhausted: 1, notSent: 0 });
  });

  test("four times exhausts the delivery, and is counted in the metrics", async () => {
    const at = await cutOff();
    for (const wait of [1_000, 5_000, 25_000]) {
      await recoverDeliveriesAtStart(at.ctx);
      expect(only(at).status).toBe("failed");
      at.ctx.clock.now += wait;
      forget(at);
      await claimDeliveries(at.ctx, noFault);
    }
    forget(at);
    await recoverDeliveriesAtStart(at.ctx);
    expect(only(at)).toMatchObject({ status: "exhausted", attempts: 4, responseCode: null });
    expect((await ledgerFigures(at.ctx)).deliveries).toEqual({
      waiting: 0,
      lateMs: 0,
      exhausted: 1,
      notSent: 0,
    });
  });

  test("while running it is tried again once its time is up, and not before", async () => {
    const before = await cutOff();
    const at = restarted(before);
    forget(before);
    at.ctx.clock.now += 29_999;
    await recoverDeliveries(at.ctx);
    expect(only(at).status).toBe("pending");
    at.ctx.clock.now += 1;
    await recoverDeliveries(at.ctx);
    at.ctx.clock.now += 1_000;
    expect(await run(at)).toMatchObject({ attempted: 1, delivered: 1, pending: 0 });
    expect(receiver.received.map(({ attempt }) => attempt)).toEqual([2]);
  });

  test("changes nothing when its answer comes after it was given up", async () => {
    const answer = Promise.withResolvers<void>();
    const sent = Promise.withResolvers<void>();
    const at = await scene(
      {},
      {
        async sendWebhook() {
          sent.resolve();
          await answer.promise;
          return { code: 200, responseStart: "", durationMs: 1 };
        },
      },
    );
    await endpoint(at, receiver.url());
    await openOne(at);
    const running = run(at);
    await sent.promise;
    at.ctx.clock.now += 40_000;
    await recoverDeliveries(at.ctx);
    expect(only(at)).toMatchObject({ status: "failed", attempts: 1 });
    // Another process has claimed the next attempt meanwhile. The answer does not belong to that one.
    const sendWebhook = () => new Promise<never>(() => {});
    at.ctx.clock.now += 1_000;
    await claimDeliveries({ ...at.ctx, sendWebhook, deliverySlots: createDeliverySlots() }, noFault);
    const next = only(at);
    answer.resolve();
    await running;
    expect(next).toMatchObject({ attempts: 2, responseCode: null, nextAttemptAt: null });
    expect(only(at)).toEqual(next);
  });
});

describe("a clock that was set back by a day", () => {
  const DAY_MS = 86_400_000;

  test("holds up no delivery: those that wait are due, and attempts under way count as cut off", async () => {
    const at = await scene();
    await endpoint(at, receiver.url());
    receiver.answer(({ attempt }) => new Response("", { status: attempt === 1 ? 500 : 200 }));
    await openOne(at);
    await run(at);
    await openOne(at);
    at.ctx.clock.now -= DAY_MS;
    expect(await run(at)).toMatchObject({ attempted: 0, pending: 2 });
    await deliverWebhooks(at.ctx, noFault);
    await run(at);
    at.ctx.clock.now += 1_000;
    await run(at);
    expect(all(at).map(({ status }) => status)).toEqual(["delivered", "delivered"]);
  });

  test("or forward, changes no count of attempts", async () => {
    const at = await scene();
    await endpoint(at, receiver.url());
    receiver.answer(() => new Response("", { status: 500 }));
    await openOne(at);
    for (let hour = 0; hour < 8; hour++) {
      await deliverWebhooks(at.ctx, noFault);
      await run(at);
      at.ctx.clock.now += DAY_MS;
    }
    expect(receiver.received.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4]);
  });
});

test("what is being sent again is not recovered a second time, whichever delivery drew its id first", async () => {
  const at = await scene();
  await endpoint(at, receiver.url());
  receiver.answer(() => new Response("", { status: 500 }));
  await openOne(at);
  for (const wait of [0, 1_000, 5_000, 25_000]) {
    at.ctx.clock.now += wait;
    await run(at);
  }
  const { id: lost, webhookId } = only(at);
  // A process whose clock is behind draws an older id.
  const behind = {
    ...at.ctx,
    newId: createIds(
      () => at.ctx.now() - 3_600_000,
      () => 2,
      -1,
    ),
  };
  const input = { webhook_id: webhookId, since: new Date(0).toISOString() };
  expect(must(await recoverWebhook(behind, MACHINE, input)).deliveries).toBe(1);
  expect(all(at).some(({ id }) => id < lost)).toBeTrue();
  expect(must(await recoverWebhook(at.ctx, MACHINE, input)).deliveries).toBe(0);
});

describe("addresses", () => {
  test("are checked at every attempt: a name that now leads to a private address is refused", async () => {
    const answers = [["127.0.0.1"], ["10.0.0.1"], ["127.0.0.1", "169.254.169.254"], ["127.0.0.1"]];
    const asked: string[] = [];
    const at = await scene({
      resolve: async (name) => {
        asked.push(name);
        return answers[asked.length - 1] ?? [];
      },
    });
    await endpoint(at, `http://hook.example:${receiver.port}/`);
    receiver.answer(() => new Response("", { status: 500 }));
    await openOne(at);
    const seen = [];
    for (const wait of [0, 1_000, 5_000, 25_000]) {
      at.ctx.clock.now += wait;
      await run(at);
      const { responseCode, responseStart } = only(at);
      seen.push([responseCode, responseStart]);
    }
    expect(asked).toEqual(Array(4).fill("hook.example"));
    expect(seen).toEqual([
      [500, ""],
      [null, "source_blocked"],
      [null, "source_blocked"],
      [500, ""],
    ]);
    expect(receiver.received.map(({ attempt }) => attempt)).toEqual([1, 4]);
  });

  test("that the operator has not allowed get nothing", async () => {
    const at = await scene({ allowNetworks: [] });
    for (const host of ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0x7f.1"])
      await endpoint(at, `http://${host}:${receiver.port}/`);
    await openOne(at);
    expect(await run(at)).toMatchObject({ attempted: 5, failed: 5 });
    expect(all(at).map(({ responseStart }) => responseStart)).toEqual(Array(5).fill("source_blocked"));
    expect(receiver.received).toEqual([]);
  });
});

describe("a disabled endpoint", () => {
  test("gets nothing more, neither new events nor those that were waiting", async () => {
    const at = await scene();
    const webhook = await endpoint(at, receiver.url());
    await endpoint(at, receiver.url("/other"));
    receiver.answer(({ path }) => new Response("", { status: path === "/" ? 500 : 200 }));
    await openOne(at);
    await run(at);
    await openOne(at);
    must(await disableWebhook(at.ctx, MACHINE, { webhook_id: webhook.id }));
    await openOne(at);
    for (let minute = 0; minute < 3; minute++) {
      at.ctx.clock.now += 60_000;
      await run(at);
    }
    expect(receiver.received.filter(({ path }) => path === "/")).toHaveLength(1);
    expect(receiver.received.filter(({ path }) => path === "/other")).toHaveLength(3);
    const its = all(at).filter(({ webhookId }) => webhookId === webhook.id);
    expect(its.map(({ status, attempts }) => [status, attempts]).toSorted()).toEqual([
      ["exhausted", 0],
      ["exhausted", 1],
    ]);
    expect(at.ctx.reader.deliveries.waiting()).toBe(0);
  });
});

describe("a fault on our side", () => {
  test("a secret of another master key: nothing is sent, no attempt is used up, the log has it", async () => {
    const at = await scene();
    await endpoint(at, receiver.url());
    const other = { ...at.ctx, vault: createVault(new Uint8Array(32).fill(7)) };
    await openOne(at);
    for (let time = 0; time < 10; time++) {
      const faults: [string, string][] = [];
      const report = await runDeliveries(other, (error, id) => faults.push([String(error), id]));
      expect(report).toEqual({ attempted: 1, delivered: 0, failed: 0, exhausted: 0, pending: 1 });
      const { id, webhookId, attempts, responseCode, responseStart } = only(at);
      expect(faults).toEqual([
        [`Error: the signing secret of ${webhookId} was encrypted with another master key`, id],
      ]);
      expect([attempts, responseCode, responseStart]).toEqual([0, null, "not_sent"]);
      expect(await run(at)).toMatchObject({ attempted: 0 });
      at.ctx.clock.now += 25_000;
    }
    expect((await ledgerFigures(other)).deliveries).toMatchObject({ notSent: 10, exhausted: 0 });
    expect(receiver.received).toEqual([]);
    expect(await run(at)).toMatchObject({ delivered: 1 });
    expect(receiver.received.map(({ attempt }) => attempt)).toEqual([1]);
  });

  test("a secret that cannot be decrypted between two attempts does not use up the second", async () => {
    const at = await scene();
    await endpoint(at, receiver.url());
    receiver.answer(({ attempt }) => new Response("", { status: attempt === 1 ? 500 : 200 }));
    await openOne(at);
    await run(at);
    at.ctx.clock.now += 1_000;
    await runDeliveries({ ...at.ctx, vault: createVault(new Uint8Array(32).fill(7)) }, () => {});
    expect(only(at)).toMatchObject({
      ...{ status: "failed", attempts: 1 },
      ...{ responseCode: null, responseStart: "not_sent", durationMs: null },
    });
    at.ctx.clock.now += 25_000;
    expect(await run(at)).toMatchObject({ delivered: 1 });
    expect(receiver.received.map(({ attempt }) => attempt)).toEqual([1, 2]);
  });

  test("a ledger that fails: the run says so, nothing is sent, and it is sent once the ledger is well", async () => {
    const at = await scene();
    await endpoint(at, receiver.url());
    await openOne(at);
    const broken = withCommands(at.ctx, async () => Promise.reject(new Error("disk full")));
    await expect(runDeliveries(broken, noFault)).rejects.toThrow("disk full");
    expect(receiver.received).toEqual([]);
    expect(await run(at)).toMatchObject({ delivered: 1 });
  });
});
