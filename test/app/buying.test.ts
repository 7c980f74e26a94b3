import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { PURCHASE_JOBS } from "../../src/app/buying.ts";
import { HOUR_MS } from "../../src/core/time.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { payForUrl } from "../../src/services/x402/pay.ts";
import { acknowledgePurchase, resolvePurchase } from "../../src/services/x402/purchases.ts";
import { begunJobs } from "../support/begun-jobs.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { asksExact, type Market, openMarket, SELLER_URL, silence } from "../support/market.ts";
import { createCaller, createStage, idempotencyOf, must } from "../support/stage.ts";

/** What the jobs of purchases log. */

let market: Market;
let ctx: TestContext;
let printed: ReturnType<typeof jest.spyOn>;
beforeEach(() => {
  market = openMarket();
  ctx = createTestContext({ x402: market.x402 });
  printed = jest.spyOn(process.stderr, "write").mockImplementation(() => true);
});
afterEach(async () => {
  printed.mockRestore();
  await ctx.close();
});

test("a chain that contradicts what a person said of a payment is a warning in the log, once", async () => {
  const stage = await createStage(ctx, { mode: "sandbox", funds: "1000000" });
  market.first = asksExact("250000");
  market.paid = () => silence(true);
  const spec = { clauses: [{ kind: "json.jsonpath", path: "$.ok" }] };
  const order = { url: SELLER_URL, max_amount: "1000000", spec };
  must(await payForUrl(ctx, await createCaller(stage), order, idempotencyOf()));
  const { id } = ctx.reader.purchases.list(stage, null, 1)[0]!;
  ctx.clock.now += 2 * HOUR_MS;
  must(await resolvePurchase(ctx, MACHINE, { purchase_id: id, known: "unpaid" }));

  market.findings = ["used"];
  for (let round = 0; round < 2; round++) {
    ctx.clock.now += HOUR_MS;
    for (const { run } of begunJobs(PURCHASE_JOBS, ctx)) await run();
  }
  // Otherwise the audit at the end of the test would name it too.
  must(await acknowledgePurchase(ctx, MACHINE, { purchase_id: id }));
  const lines = printed.mock.calls.map((call: unknown[]) => JSON.parse(String(call[0])));
  expect(lines).toEqual([
    {
      time: expect.any(String),
      level: "warning",
      message: expect.stringContaining("a chain contradicts what a person said of a payment"),
      purchase_id: id,
    },
  ]);
});
