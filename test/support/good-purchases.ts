import { expect } from "bun:test";
import type { Finding } from "../../src/core/x402/purchase.ts";
import { payForUrl } from "../../src/services/x402/pay.ts";
import { endingAfter } from "./ending.ts";
import { asksExact, asksVoucher, delivers, givesAway, type Market, RECEIPT, silence } from "./market.ts";
import { createCaller, idempotencyOf, must, type Stage } from "./stage.ts";

/** Purchases of a sandbox's agent that ended in every way, and one that was cut off in each phase. */
export async function buildGoodPurchases(stage: Stage, market: Market): Promise<void> {
  const { ctx } = stage;
  const caller = await createCaller(stage, { failure_budget: 100 });
  const spec = { clauses: [{ kind: "json.jsonpath", path: "$.ok" }] };
  const pay = (path: string, on = ctx as Parameters<typeof payForUrl>[0]) => {
    const url = `http://seller.example/${path}`;
    const input = { url, max_amount: "100", spec, agent_id: caller.agentId };
    return payForUrl(on, caller, input, idempotencyOf(path));
  };
  const good = { ok: 1 };
  const bought = async (path: string, paid: ReturnType<typeof delivers>, findings: readonly Finding[]) => {
    market.paid = () => paid;
    // Each is asked about from the start of its findings.
    market.chainAsked = 0;
    market.findings = findings;
    must(await pay(path));
  };
  market.first = givesAway("free");
  must(await pay("free"));
  market.first = asksVoucher("100");
  await bought("voucher", delivers(good), ["none"]);
  await bought("voucher-silent", silence(true), ["none"]);
  market.first = asksExact("100", 1);
  await bought("paid", delivers(good, RECEIPT), ["used"]);
  market.first = asksExact("100");
  await bought("paid-bad", delivers({}, RECEIPT), ["used"]);
  await bought("unpaid", silence(true), ["expired"]);
  await bought("unknown", silence(true), ["open"]);
  for (const [commits, path] of [
    [1, "quoting"],
    [2, "held"],
    [3, "signed"],
    [4, "answered"],
    [5, "verifying"],
  ] as const)
    await expect(pay(path, endingAfter(ctx, commits))).rejects.toThrow("crashed");
}
