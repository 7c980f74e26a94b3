import { afterEach, beforeEach, expect, test } from "bun:test";
import { recoverLeftovers } from "../../src/app/recovery.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createWebhook } from "../../src/services/admin/webhooks.ts";
import { claimDeliveries } from "../../src/services/webhooks/deliver.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { ENGINE } from "../support/engine.ts";
import { noFault } from "../support/no-fault.ts";
import { createCaller, createStage, must, open, SCRIPTED, verify, warrantIn } from "../support/stage.ts";
import { until } from "../support/until.ts";

/** What a start does with what a crash left. */

let ctx: TestContext;
let gate: PromiseWithResolvers<never>;
beforeEach(() => {
  gate = Promise.withResolvers();
  gate.promise.catch(() => {});
  ctx = createTestContext({
    ...SCRIPTED,
    fetchEvidence: () => gate.promise,
    sendWebhook: () => gate.promise,
  });
});
afterEach(async () => {
  await ctx.deliverySlots.close();
  await ctx.close();
});

test("a check, a delivery and the server's address are put right together, in one commit", async () => {
  const stage = await createStage(ctx);
  const caller = await createCaller(stage);
  const { organisationId, mode } = stage;
  must(
    await createWebhook(ctx, MACHINE, {
      organisation_id: organisationId,
      mode,
      url: "https://h.example/",
      events: [],
    }),
  );
  const { id } = warrantIn(await open(stage, caller));
  const checking = verify(stage, caller, id).catch(() => {});
  await until("the check has begun", () => ctx.reader.warrants.find(id)?.state === "verifying");
  const delivering = claimDeliveries(ctx, () => {});
  const claimed = () =>
    ctx.reader.deliveries.list(stage, 10).filter(({ claimedUntil }) => claimedUntil !== null);
  await until("a delivery is claimed", () => claimed().length > 0);

  const { execute } = ctx.store;
  let [underWay, most] = [0, 0];
  Object.assign(ctx.store, {
    async execute(command: never) {
      most = Math.max(most, ++underWay);
      try {
        return await execute(command);
      } finally {
        underWay -= 1;
      }
    },
  });
  await recoverLeftovers(ctx, noFault);
  Object.assign(ctx.store, { execute });
  expect(ctx.reader.warrants.find(id)?.state).toBe("held");
  expect(ctx.reader.instance.get().baseUrl).toBe(ctx.baseUrl);
  expect(claimed()).toEqual([]);
  // The warrant, its delivery or deliveries, and the instance waited for the same commit; in a database each waits for what it reads first.
  if (ENGINE === "embedded") expect(most).toBeGreaterThanOrEqual(3);
  gate.reject(new Error("cut off"));
  await Promise.all([checking, delivering]);
});
