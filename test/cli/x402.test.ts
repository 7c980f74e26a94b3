import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { sha256 } from "../../src/core/canonical.ts";
import type { KeyCaller } from "../../src/core/roles.ts";
import type { Finding } from "../../src/core/x402/purchase.ts";
import { reconcilePurchases } from "../../src/jobs/purchases.ts";
import { ledgerFigures } from "../../src/services/figures.ts";
import { rememberServer } from "../../src/services/instance.ts";
import { settleWarrant } from "../../src/services/warrants/settle.ts";
import { payForUrl } from "../../src/services/x402/pay.ts";
import { reconcilePurchase } from "../../src/services/x402/reconcile.ts";
import { type CommandLine, createCommandLine } from "../support/command-line.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import {
  asksExact,
  BASE_SEPOLIA,
  delivers,
  givesAway,
  type Market,
  openMarket,
  RECEIPT,
  SELLER_URL,
  silence,
} from "../support/market.ts";
import { noContradiction, noFault } from "../support/no-fault.ts";
import { codeOf, createCaller, createStage, idempotencyOf, must, type Stage } from "../support/stage.ts";

/** `holdfast x402 list|show|resolve`: how far purchases came, and whether their sellers were paid. */

let market: Market;
let ctx: TestContext;
let cli: CommandLine;
let stage: Stage;
let caller: KeyCaller;
beforeEach(async () => {
  market = openMarket();
  ctx = createTestContext({ x402: market.x402 });
  cli = createCommandLine(ctx);
  stage = await createStage(ctx, { mode: "sandbox", funds: "1000000" });
  caller = await createCaller(stage);
});
afterEach(() => ctx.close());

async function buy(): Promise<string> {
  const spec = { clauses: [{ kind: "json.jsonpath", path: "$.ok" }] };
  must(await payForUrl(ctx, caller, { url: SELLER_URL, max_amount: "1000000", spec }, idempotencyOf()));
  return ctx.reader.purchases.list(stage, null, 1)[0]!.id;
}
const buyUnknown = (): Promise<string> => {
  market.first = asksExact("250000");
  market.paid = () => silence(true);
  return buy();
};
const list = () => ["x402", "list", "--organisation", stage.organisationId, "--mode", "sandbox"];
const failure = (err: string) => JSON.parse(err).error;

test("list and show say what the seller asked, how far it came, and whether the seller was paid", async () => {
  expect((await cli.run(...list())).out).toBe("Nothing has been bought, sandbox.\n");
  const voucher = await buy();
  market.first = givesAway("free");
  const free = await buy();
  const unknown = await buyUnknown();
  market.paid = () => delivers({ ok: 1 }, RECEIPT);
  const paid = await buy();

  const now = timeIn(0);
  const listed = await cli.json(...list());
  expect(listed).toMatchObject({
    object: "list",
    has_more: false,
    data: [
      {
        id: paid,
        phase: "ended",
        quoted: { amount: "250000", asset: "USDC" },
        ...{ known: "paid", known_by: "receipt", attempt: "receipted", transaction: expect.any(String) },
        ...{ response_status: 200, response_hash: sha256('{"ok":1}'), answered_at: now, ended_at: now },
      },
      { id: unknown, known: "unknown", warrant_state: "escalated", attempt: "no_answer" },
      {
        id: free,
        ...{ phase: "ended", quoted: null, pays: null, warrant_id: null },
        ...{ response_status: 200, response_hash: sha256("free"), answered_at: now, ended_at: now },
      },
      { id: voucher, pays: { kind: "voucher" }, warrant_state: "escalated" },
    ],
  });
  const { out } = await cli.run(...list());
  for (const text of ["0.25 USDC", "paid, by receipt", "a voucher, paid in the ledger", "nothing held"])
    expect(out).toContain(text);
  const page = await cli.json(...list(), "--limit", "1", "--starting-after", paid);
  expect(page).toMatchObject({ has_more: true, data: [{ id: unknown }] });

  const shown = await cli.json("x402", "show", unknown);
  expect(shown).toMatchObject({
    id: unknown,
    object: "purchase",
    pays: { kind: "exact", protocol: 2, network: "eip155:84532" },
    valid_before: expect.stringMatching(/Z$/),
    next_check_at: expect.stringMatching(/Z$/),
  });
  expect((await cli.run("x402", "show", unknown)).out).toContain("payment      unknown");
});

const HOUR_MS = 3_600_000;
const EXPIRY_MS = 60_000;
const timeIn = (ms: number) => new Date(ctx.clock.now + ms).toISOString();

test.each([
  ["unpaid", "refunded", 0n],
  ["paid", "escalated", 250_000n],
])(
  "resolve --%s where no chain can say it, an hour after the authorization's expiry",
  async (known, state, held) => {
    const id = await buyUnknown();
    const boughtAt = ctx.clock.now;
    const message = `The seller may still have the payment taken until ${timeIn(EXPIRY_MS)}, by the chain's clock. A person may say what became of it from ${timeIn(EXPIRY_MS + HOUR_MS)} on.`;
    for (const waitMs of [0, EXPIRY_MS + HOUR_MS - 1]) {
      ctx.clock.now += waitMs;
      const early = await cli.run("x402", "resolve", id, `--${known}`, "--json");
      expect([early.code, failure(early.err).code]).toEqual([1, "illegal_transition"]);
      expect(failure(early.err).message).toBe(message);
    }
    ctx.clock.now += 1;
    const resolved = await cli.json("x402", "resolve", id, `--${known}`, "--note", "asked the seller");
    expect(resolved).toMatchObject({
      known,
      known_by: "person",
      warrant_state: state,
      chain_said: null,
      contradicted: false,
    });
    expect(resolved.next_check_at).toEqual(expect.stringMatching(/Z$/));
    expect(ctx.reader.balances.list(stage)[0]!.balance.held).toBe(held);
    const entry = ctx.reader.auditEntries.list(stage.organisationId, null, 1)[0]!;
    expect(entry).toMatchObject({
      action: "purchase.resolved",
      subject: id,
      before: { known: "unknown", warrant_state: "escalated" },
      after: { known, warrant_state: state },
    });
    const [open, closed] = ctx.reader.escalations.list(stage, 10);
    expect((closed ?? open)!).toMatchObject({
      ...{ status: "resolved", note: "asked the seller", decision: known === "unpaid" ? "refund" : null },
      ...{ createdAt: boughtAt, resolvedAt: ctx.clock.now },
    });

    const again = await cli.run("x402", "resolve", id, "--unpaid", "--json");
    expect(failure(again.err).message).toBe(`The payment is known already: ${known}, by person.`);
    if (known === "unpaid") return;
    expect(open).toMatchObject({
      ...{ status: "open", reasonCodes: ["source_timeout", "payment_irrevocable"] },
      ...{ createdAt: ctx.clock.now, resolvedAt: null },
    });
    const settle = (decision: "release" | "refund") => {
      const warrantId = String(resolved.warrant_id);
      return settleWarrant(
        ctx,
        stage.operator,
        { warrantId, decision, releasedBps: null, ifMatch: null },
        idempotencyOf(),
      );
    };
    expect(codeOf(await settle("refund"))).toBe("illegal_transition");
    expect(codeOf(await settle("release"))).toBe(200);
  },
);

const chainDecidesUntil = (time: string) =>
  `HOLDFAST_EVM_RPC reaches eip155:84532: the chain decides, and is asked again. Where it stays away, a person may say it once it has been asked in vain for a day: not before ${time}.`;

test("resolve is refused where the server reaches the chain, though the command line does not", async () => {
  const id = await buyUnknown();
  const serves = async (ids: readonly number[]) => {
    const { x402 } = market;
    await rememberServer({ ...ctx, x402: { ...x402, chains: { ...x402.chains, ids } } });
  };
  await serves([8_453, BASE_SEPOLIA]);
  ctx.clock.now += 48 * HOUR_MS;
  const message = chainDecidesUntil(timeIn(24 * HOUR_MS));
  const refused = await cli.run("x402", "resolve", id, "--unpaid", "--json");
  expect([refused.code, failure(refused.err).message]).toEqual([1, message]);
  expect(ctx.reader.purchases.get(id)).toMatchObject({ known: "unknown" });
  await serves([8_453]);
  expect(await cli.json("x402", "resolve", id, "--unpaid")).toMatchObject({ warrant_state: "refunded" });
});

test("resolve works where the chain has not answered for a day, and is still asked", async () => {
  const id = await buyUnknown();
  const resolve = () => cli.run("x402", "resolve", id, "--unpaid", "--json");
  const ask = async (finding: Finding) => {
    market.findings = [finding];
    expect(await reconcilePurchases(ctx, noFault, noContradiction)).toBe(0);
  };
  ctx.clock.now += HOUR_MS;
  await ask("open");
  await rememberServer(ctx);
  expect(failure((await resolve()).err).message).toBe(chainDecidesUntil(timeIn(24 * HOUR_MS)));
  ctx.clock.now += HOUR_MS;
  await ask("away");
  // Nobody has asked the chain since then, so it has not failed to answer.
  const message = chainDecidesUntil(timeIn(24 * HOUR_MS));
  ctx.clock.now += 48 * HOUR_MS;
  expect(failure((await resolve()).err).message).toBe(message);
  await ask("away");
  expect((await resolve()).code).toBe(0);
  expect(ctx.reader.purchases.get(id)).toMatchObject({ known: "unpaid", knownBy: "person" });
});

test("resolve is refused where a chain decides, nothing is unknown, or neither --paid nor --unpaid is given", async () => {
  const voucher = await buy();
  market.first = givesAway("free");
  const free = await buy();
  const unknown = await buyUnknown();
  market.findings = ["away"];
  await rememberServer(ctx);
  ctx.clock.now += EXPIRY_MS + HOUR_MS;
  const chainDecides = chainDecidesUntil(timeIn(24 * HOUR_MS));
  const rows: readonly (readonly [args: readonly string[], code: string, message: string])[] = [
    [[unknown, "--unpaid"], "illegal_transition", chainDecides],
    [[voucher, "--paid"], "illegal_transition", "A voucher moves no money; there is nothing to find out."],
    [[free, "--paid"], "illegal_transition", "Nothing had to be paid for it."],
    [["pur_none", "--paid"], "purchase_not_found", "There is no such purchase."],
    [[unknown], "validation_failed", "--paid: say --paid, or --unpaid"],
    [[unknown, "--paid", "--unpaid"], "validation_failed", "--paid: say --paid, or --unpaid"],
  ];
  for (const [args, code, message] of rows) {
    const { code: exit, err } = await cli.run("x402", "resolve", ...args, "--json");
    expect([exit, failure(err).code, failure(err).message]).toEqual([1, code, message]);
  }
  expect(failure((await cli.run("x402", "show", "pur_none", "--json")).err).code).toBe("purchase_not_found");
});

const allWarrantsAndMoney = () => ({
  balances: ctx.reader.balances.list(stage),
  warrants: ctx.reader.warrants.byCreation(stage, {}, {}, 10),
  escalations: ctx.reader.escalations.list(stage, 10),
});

describe("a chain that comes back after a person has attested a payment", () => {
  let id: string;
  const contradictions: string[] = [];
  const ask = async (finding: Finding) => {
    market.findings = [finding];
    ctx.clock.now += HOUR_MS;
    const learnt = await reconcilePurchases(ctx, noFault, (purchaseId) => contradictions.push(purchaseId));
    expect(learnt).toBe(0);
  };
  beforeEach(async () => {
    contradictions.length = 0;
    id = await buyUnknown();
    ctx.clock.now += 2 * HOUR_MS;
  });

  test.each([
    ["unpaid", "used", "paid"],
    ["paid", "expired", "unpaid"],
  ] as const)("%s, the chain says %s: a disagreement, and nothing moves", async (known, finding, said) => {
    await cli.json("x402", "resolve", id, `--${known}`);
    const before = allWarrantsAndMoney();
    for (const nothingYet of ["none", "away", "open"] as const) {
      await ask(nothingYet);
      expect(await cli.json("x402", "show", id)).toMatchObject({ chain_said: null, contradicted: false });
    }
    expect(await ctx.store.audit()).toEqual([]);
    await ask(finding);
    expect(contradictions).toEqual([id]);
    expect(await cli.json("x402", "show", id)).toMatchObject({
      ...{ known, known_by: "person", chain_said: said, contradicted: true, next_check_at: null },
    });
    expect((await cli.run("x402", "show", id)).out).toContain(
      `${known}, by person, BUT THE CHAIN SAYS ${said}`,
    );
    expect((await ledgerFigures(ctx)).purchases).toMatchObject({ unknown: 0, contradicted: 1 });
    expect(await ctx.store.audit()).toEqual([
      `purchase ${id}: a person said that its payment is ${known}, and its chain says ${said}`,
    ]);
    expect(allWarrantsAndMoney()).toEqual(before);
    // It is said once.
    await ask(finding);
    expect(contradictions).toEqual([id]);
    // Once somebody has acknowledged it, it alarms nobody. Nothing has moved, and it stays what it was.
    const acknowledged = await cli.json("x402", "acknowledge", id, "--note", "the seller sent it back");
    expect(acknowledged).toMatchObject({ known, chain_said: said, contradicted: true });
    expect(acknowledged.acknowledged_at).toBe(new Date(ctx.clock.now).toISOString());
    expect(await ctx.store.audit()).toEqual([]);
    expect((await ledgerFigures(ctx)).purchases.contradicted).toBe(0);
    expect((await cli.run("x402", "show", id)).out).toContain(`SAYS ${said}, acknowledged 20`);
    expect(allWarrantsAndMoney()).toEqual(before);
    ctx.clock.now += HOUR_MS;
    expect(await cli.json("x402", "acknowledge", id)).toEqual(acknowledged);
    const { data } = await cli.json("audit-log", "--organisation", stage.organisationId, "--limit", "1");
    expect(data).toMatchObject([
      { action: "purchase.acknowledged", subject: id, after: { note: "the seller sent it back" } },
    ]);
  });

  test("is acknowledged only where it contradicts somebody", async () => {
    await cli.json("x402", "resolve", id, "--unpaid");
    await ask("expired");
    expect(await cli.run("x402", "acknowledge", id)).toMatchObject({
      code: 1,
      err: expect.stringContaining("No chain contradicts what is known of its payment."),
    });
  });

  test("that agrees: it says so, and is asked no more", async () => {
    await cli.json("x402", "resolve", id, "--unpaid");
    await ask("away");
    const silentSince = () => ctx.reader.purchases.list(stage, null, 1)[0]?.chainSilentSince;
    expect(silentSince()).toBe(ctx.clock.now);
    await ask("expired");
    expect(silentSince()).toBeNull();
    expect(await cli.json("x402", "show", id)).toMatchObject({
      ...{ known_by: "person", chain_said: "unpaid", contradicted: false, next_check_at: null },
    });
    expect((await cli.run("x402", "show", id)).out).toContain("unpaid, by person, the chain agrees");
    expect(contradictions).toEqual([]);
    expect((await ledgerFigures(ctx)).purchases.contradicted).toBe(0);
  });

  test("while a person attests it: what the person said stays, and the chain is asked once more", async () => {
    market.findings = ["used"];
    const { find } = market.x402.chains;
    const [unknown] = ctx.reader.purchases.list(stage, null, 1);
    const late = {
      ...market.x402.chains,
      async find(...given: Parameters<typeof find>) {
        await cli.json("x402", "resolve", id, "--paid");
        return find(...given);
      },
    };
    const asking = { ...ctx, x402: { ...market.x402, chains: late } };
    expect(await reconcilePurchase(asking, unknown!)).toBe("nothing");
    expect(await cli.json("x402", "show", id)).toMatchObject({ known_by: "person", chain_said: null });
    await ask("used");
    expect(await cli.json("x402", "show", id)).toMatchObject({ known_by: "person", chain_said: "paid" });
  });
});
