import { afterEach, beforeEach, expect, test } from "bun:test";
import { CLAIM_MS } from "../../src/core/webhook.ts";
import { recoverPurchases, recoverPurchasesAtStart } from "../../src/jobs/purchases.ts";
import { recoverAtStart, recoverOverdueChecks } from "../../src/jobs/recover.ts";
import { deliverWebhooks } from "../../src/jobs/webhooks.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createWebhook } from "../../src/services/admin/webhooks.ts";
import type { Context } from "../../src/services/context.ts";
import { recoverDeliveriesAtStart } from "../../src/services/webhooks/recover.ts";
import { createDeliverySlots } from "../../src/services/webhooks/slots.ts";
import { payForUrl } from "../../src/services/x402/pay.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { createInstances, type TestInstance } from "../support/instances.ts";
import { delivers, type Market, openMarket, SELLER_URL } from "../support/market.ts";
import { noFault } from "../support/no-fault.ts";
import {
  codeOf,
  createCaller,
  createStage,
  idempotencyOf,
  must,
  open,
  SCRIPTED,
  type Stage,
  verify,
  warrantIn,
} from "../support/stage.ts";
import { until } from "../support/until.ts";

/** Two instances on one ledger: neither touches what the other works on, and each takes over what a dead one left. */

let market: Market;
let ctx: TestContext;
let one: Context;
let other: Context;
let instances: readonly [TestInstance, TestInstance];
let stage: Stage;
let gate: PromiseWithResolvers<void>;
/** The endpoints' requests, by the instance that sent them. */
let sent: string[];
beforeEach(async () => {
  gate = Promise.withResolvers();
  sent = [];
  market = openMarket();
  ctx = createTestContext({
    ...SCRIPTED,
    fetchEvidence: async (...asked) => {
      await gate.promise;
      return SCRIPTED.fetchEvidence(...asked);
    },
  });
  instances = createInstances(2) as typeof instances;
  [one, other] = instances.map(
    (own, index): Context => ({
      ...ctx,
      instances: own,
      // What each has in its memory.
      x402: { ...market.x402, underWay: new Set() },
      deliverySlots: createDeliverySlots(),
      sendWebhook: async () => {
        sent.push(`instance ${index}`);
        await gate.promise;
        return { code: 200, responseStart: "", durationMs: 1 };
      },
    }),
  ) as [Context, Context];
  stage = { ...(await createStage(one, { mode: "sandbox", funds: "1000" })), ctx: one };
});
afterEach(async () => {
  gate.resolve();
  await Promise.all([one, other].map(({ deliverySlots }) => deliverySlots.close()));
  await ctx.close();
});

const stateOf = (id: string) => ctx.reader.warrants.find(id)?.state as string;

test("a check is undone by nobody while its instance lives, and by the others once it is dead", async () => {
  const agent = await createCaller(stage);
  const { id } = warrantIn(await open(stage, agent));
  const key = idempotencyOf();
  const running = verify(stage, agent, id, undefined, key);
  await until("it is being verified", () => stateOf(id) === "verifying");
  expect(await recoverAtStart(other, noFault)).toBe(0);
  expect(await recoverOverdueChecks(other, noFault)).toBe(0);
  expect(await recoverOverdueChecks(one, noFault)).toBe(0);
  expect(stateOf(id)).toBe("verifying");

  instances[0].die();
  expect(await recoverOverdueChecks(other, noFault)).toBe(1);
  expect(stateOf(id)).toBe("held");
  // The key is free, and the dead one's check, where it was only stopped, decides nothing.
  gate.resolve();
  expect(codeOf(await running)).toBe("version_conflict");
  expect(codeOf(await verify({ ...stage, ctx: other }, agent, id, undefined, key))).toBe(200);
});

test("a purchase that is being paid is ended by nobody while its instance lives", async () => {
  const caller = await createCaller(stage);
  const pay = (on: Context) =>
    payForUrl(
      on,
      caller,
      { url: SELLER_URL, max_amount: "100", spec: { clauses: [{ kind: "json.jsonpath", path: "$.ok" }] } },
      idempotencyOf("the key"),
    );
  const arrived = Promise.withResolvers<void>();
  market.paid = async () => {
    arrived.resolve();
    await gate.promise;
    return delivers({ ok: 1 });
  };
  const paying = pay(one);
  await arrived.promise;
  const phase = () => ctx.reader.purchases.list(stage, null, 1)[0]!.phase;
  const before = phase();
  expect(await recoverPurchasesAtStart(other, noFault)).toBe(0);
  expect(await recoverPurchases(other, noFault)).toBe(0);
  expect(phase()).toBe(before);

  instances[0].die();
  expect(await recoverPurchases(other, noFault)).toBe(1);
  expect(phase()).toBe("ended");
  // The dead one, where it was only stopped, ends nothing a second time, and nothing is sent twice.
  gate.resolve();
  const [late, replayed] = [await paying, await pay(other)];
  expect(codeOf(late)).toBe("idempotency_in_flight");
  expect([codeOf(replayed), market.sent.length]).toEqual([200, 1]);
});

test("a purchase that lives to its end is paid and answered once", async () => {
  const caller = await createCaller(stage);
  market.paid = () => delivers({ ok: 1 });
  const order = {
    url: SELLER_URL,
    max_amount: "100",
    spec: { clauses: [{ kind: "json.jsonpath", path: "$.ok" }] },
  };
  expect(codeOf(await payForUrl(one, caller, order, idempotencyOf("k")))).toBe(200);
  expect(await recoverPurchases(other, noFault)).toBe(0);
});

test("an endpoint's deliveries are sent by one instance, and by another once that one is dead", async () => {
  const { organisationId, mode } = stage;
  const endpoint = { organisation_id: organisationId, mode, url: "https://h.example/", events: [] };
  must(await createWebhook(one, MACHINE, endpoint));
  warrantIn(await open(stage, stage.operator));
  await deliverWebhooks(other, noFault);
  expect(sent).toEqual([]);
  await deliverWebhooks(one, noFault);
  await until("it is sent", () => sent.length > 0);
  expect(sent).toEqual(["instance 0"]);

  // A start beside it leaves the attempt under way alone.
  const claimed = () => ctx.reader.deliveries.list(stage, 1)[0]!.claimedUntil;
  expect(await recoverDeliveriesAtStart(other)).toBe(0);
  expect(claimed()).not.toBeNull();
  instances[0].die();
  ctx.clock.now += CLAIM_MS;
  await deliverWebhooks(other, noFault);
  ctx.clock.now += 1_000;
  await deliverWebhooks(other, noFault);
  await until("it is sent anew", () => sent.length > 1);
  expect(sent).toEqual(["instance 0", "instance 1"]);
});
