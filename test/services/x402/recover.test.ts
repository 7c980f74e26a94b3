import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { isRefusal } from "../../../src/core/errors.ts";
import type { KeyCaller } from "../../../src/core/roles.ts";
import type { Finding } from "../../../src/core/x402/purchase.ts";
import { followAgents } from "../../../src/jobs/agents.ts";
import { sweepDeadlines } from "../../../src/jobs/deadlines.ts";
import { recoverPurchases, recoverPurchasesAtStart } from "../../../src/jobs/purchases.ts";
import { recoverAtStart, recoverOverdueChecks } from "../../../src/jobs/recover.ts";
import { setAgentStatus } from "../../../src/services/admin/agents.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import type { Context } from "../../../src/services/context.ts";
import { ensureInstance } from "../../../src/services/instance.ts";
import { CHECK_LEASE_MS } from "../../../src/services/warrants/interrupt.ts";
import { payForUrl } from "../../../src/services/x402/pay.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import {
  asksExact,
  asksVoucher,
  delivers,
  type Market,
  openMarket,
  RECEIPT,
  SELLER_URL,
  silence,
} from "../../support/market.ts";
import { noFault } from "../../support/no-fault.ts";
import {
  codeOf,
  createCaller,
  createStage,
  intentOf,
  must,
  type Stage,
  settle,
  verify,
} from "../../support/stage.ts";

/** What a crash leaves of a purchase at each of its commits, what recovery makes of it, and what may not come between. */

let market: Market;
let ctx: TestContext;
let stage: Stage;
let caller: KeyCaller;
beforeEach(async () => {
  market = openMarket();
  ctx = createTestContext({ x402: market.x402 });
  stage = await createStage(ctx, { mode: "sandbox", funds: "1000" });
  caller = await createCaller(stage);
  await ensureInstance(ctx);
});
afterEach(() => ctx.close());

const SPEC = { clauses: [{ kind: "json.jsonpath", path: "$.ok" }] };
const pay = (on: Context = ctx, intent = intentOf("the key")) =>
  payForUrl(on, caller, { url: SELLER_URL, max_amount: "100", spec: SPEC, agent_id: caller.agentId }, intent);

/** The same service, whose process ends after so many commits. */
function endingAfter(commits: number): Context {
  let count = 0;
  return {
    ...ctx,
    store: {
      ...ctx.store,
      reader: ctx.store.reader,
      execute: async (command) => {
        if (count >= commits) throw new Error("crashed");
        count += 1;
        return ctx.store.execute(command);
      },
    },
  };
}

const purchases = () => ctx.store.reader.purchases.list(stage, null, 10);
const warrant = () => ctx.store.reader.warrants.byCreation(stage, {}, {}, 1)[0];
const escalations = () => ctx.store.reader.escalations.list(stage, 10);
const books = () => ctx.store.reader.balances.list(stage)[0]!.balance;
const onFault = (error: unknown): never => {
  throw error;
};
const answerOf = (answer: Awaited<ReturnType<typeof pay>>) => {
  if (isRefusal(answer)) throw new Error(answer.message);
  return JSON.parse(answer.body);
};

type Row = readonly [
  commits: number,
  left: string,
  state: string | null,
  expected: { readonly answer?: object; readonly sent: number; readonly atStart: boolean },
];

/** A crash after so many commits, and what is there after recovery. */
function walk(kind: "voucher" | "exact", findings: readonly Finding[], rows: readonly Row[]): void {
  for (const [commits, left, state, { answer, sent, atStart }] of rows) {
    test(`${kind}: cut off ${left}: ${state ?? "nothing held"}`, async () => {
      market.first = kind === "voucher" ? asksVoucher("100") : asksExact("100");
      market.paid = () => delivers({ ok: 1 }, kind === "exact" ? RECEIPT : {});
      market.findings = findings;
      await expect(pay(endingAfter(commits))).rejects.toThrow("crashed");
      expect(market.sent).toHaveLength(sent);
      expect(codeOf(await pay())).toBe("idempotency_in_flight");

      await recoverAtStart(ctx, onFault);
      const quick = await recoverPurchasesAtStart(ctx, onFault);
      expect(quick).toBe(atStart ? 1 : 0);
      expect(await recoverPurchases(ctx, onFault)).toBe(atStart ? 0 : 1);
      expect(await recoverPurchases(ctx, onFault)).toBe(0);
      expect(warrant()?.state ?? null).toBe(state as never);
      expect(market.sent).toHaveLength(sent);
      if (state === null) {
        expect(purchases()).toEqual([]);
        expect(answerOf(await pay())).toMatchObject({ state: "released" });
        expect(market.sent).toHaveLength(sent + 1);
        return;
      }
      const replayed = await pay();
      expect(answerOf(replayed)).toMatchObject({ ...answer, state });
      expect(replayed).toMatchObject({ replayed: true, status: 200 });
      expect([market.sent.length, purchases().length]).toEqual([sent, 1]);
      expect(purchases()[0]!.phase).toBe("ended");
      const waits = state === "escalated";
      expect(books()).toMatchObject({ held: waits ? 100n : 0n, paid: state === "released" ? 100n : 0n });
      // An interruption is nobody's failure.
      const isFailure = waits;
      expect(ctx.store.reader.agents.get(caller.agentId)!.failureCount).toBe(isFailure ? 1 : 0);
    });
  }
}

const REFUNDED = { paid: false, status: 0, body: "", reason_codes: ["source_unreachable"], passed: false };
const RELEASED = { paid: true, passed: true, status: 200, body: '{"ok":1}', reason_codes: [] };

describe("a crash", () => {
  walk(
    "voucher",
    ["none"],
    [
      [1, "before the seller has answered", null, { sent: 0, atStart: true }],
      [2, "with the hold", "refunded", { answer: REFUNDED, sent: 0, atStart: true }],
      [3, "after the payment was sent", "refunded", { answer: REFUNDED, sent: 1, atStart: true }],
      [4, "with the answer kept", "released", { answer: RELEASED, sent: 1, atStart: false }],
      [5, "while it was checked", "released", { answer: RELEASED, sent: 1, atStart: false }],
    ],
  );
  walk(
    "exact",
    ["used"],
    [
      [1, "before the seller has answered", null, { sent: 0, atStart: true }],
      [2, "with the hold", "refunded", { answer: REFUNDED, sent: 0, atStart: true }],
      [
        3,
        "after the payment was sent",
        "escalated",
        {
          answer: { ...REFUNDED, reason_codes: ["source_unreachable", "payment_unknown"] },
          sent: 1,
          atStart: true,
        },
      ],
      [4, "with the answer kept", "released", { answer: RELEASED, sent: 1, atStart: false }],
      [5, "while it was checked", "released", { answer: RELEASED, sent: 1, atStart: false }],
    ],
  );

  test("before the first commit leaves nothing", async () => {
    await expect(pay(endingAfter(0))).rejects.toThrow("crashed");
    expect([purchases(), market.asked]).toEqual([[], []]);
    expect(answerOf(await pay())).toMatchObject({ state: "escalated" });
  });

  test("with nothing to pay leaves nothing", async () => {
    market.first = { ...asksVoucher("100"), status: 200 };
    await expect(pay(endingAfter(1))).rejects.toThrow("crashed");
    expect(await recoverPurchasesAtStart(ctx, onFault)).toBe(1);
    expect(answerOf(await pay())).toMatchObject({ state: null, status: 200 });
  });

  test("after no answer came: the hold returns, or waits until the payment is known", async () => {
    market.paid = () => silence(true);
    await expect(pay(endingAfter(4))).rejects.toThrow("crashed");
    expect(await recoverPurchases(ctx, onFault)).toBe(1);
    expect(answerOf(await pay())).toMatchObject({ ...REFUNDED, state: "refunded" });
    market.first = asksExact("100");
    market.findings = ["unused"];
    await expect(pay(endingAfter(5), intentOf("another"))).rejects.toThrow("crashed");
    expect(await recoverPurchases(ctx, onFault)).toBe(1);
    expect(warrant()?.state).toBe("escalated");
    expect(purchases()[0]).toMatchObject({ known: "unknown", nextCheckAt: expect.any(Number) });
  });

  test("what was fresh when it came is judged as of then", async () => {
    const spec = { clauses: [{ kind: "data.freshness", maxAgeSeconds: 60 }] };
    const fresh = (on: Context) =>
      payForUrl(on, caller, { url: SELLER_URL, max_amount: "100", spec }, intentOf("fresh"));
    market.paid = () => delivers({ generated_at: new Date(ctx.clock.now).toISOString() });
    await expect(fresh(endingAfter(4))).rejects.toThrow("crashed");
    ctx.clock.now += 7 * 24 * 3_600_000;
    expect(await recoverPurchases(ctx, onFault)).toBe(1);
    expect(answerOf(await fresh(ctx))).toMatchObject({ state: "released", passed: true });
  });
});

describe("a fault", () => {
  test("after the hold does not free the key; the job ends the purchase, and its answer replays", async () => {
    market.paid = () => {
      throw new Error("a fault");
    };
    await expect(pay()).rejects.toThrow("a fault");
    expect(codeOf(await pay())).toBe("idempotency_in_flight");
    expect(market.x402.underWay.size).toBe(0);
    expect(await recoverPurchases(ctx, onFault)).toBe(1);
    expect(answerOf(await pay())).toMatchObject({ state: "refunded" });
  });

  test("of one purchase keeps no other from its end", async () => {
    for (const key of ["one", "two", "three"])
      await expect(pay(endingAfter(2), intentOf(key))).rejects.toThrow("crashed");
    const [doomed] = purchases();
    const broken: Context = {
      ...ctx,
      store: {
        ...ctx.store,
        reader: ctx.store.reader,
        execute: async (command) => {
          if (command.needs.purchaseId === doomed!.id) throw new Error("broken");
          return ctx.store.execute(command);
        },
      },
    };
    const told: string[] = [];
    expect(await recoverPurchases(broken, (error, id) => told.push(`${id}: ${error}`))).toBe(2);
    expect(told).toEqual([`${doomed!.id}: Error: broken`]);
    expect(await recoverPurchases(ctx, onFault)).toBe(1);
  });

  test("of the evaluator is a later end, not another payment", async () => {
    market.paid = () => delivers({ ok: 1 });
    const busy: Context = {
      ...ctx,
      evaluate: () => Promise.reject({ refused: "rate_limit_exceeded", message: "busy" }),
    };
    expect(codeOf(await pay(busy))).toBe("rate_limit_exceeded");
    expect(warrant()?.state).toBe("verifying");
    expect(codeOf(await pay())).toBe("idempotency_in_flight");
    expect(await recoverPurchases(ctx, onFault)).toBe(1);
    expect(answerOf(await pay())).toMatchObject({ state: "released", body: '{"ok":1}' });
    expect(market.sent).toHaveLength(1);
  });
});

describe("while a purchase is under way, nothing comes between", () => {
  let arrived: PromiseWithResolvers<void>;
  let answered: PromiseWithResolvers<void>;
  let running: ReturnType<typeof pay>;
  /** Waits at the seller, signed and sent. */
  const begin = async (kind: "voucher" | "exact" = "voucher") => {
    arrived = Promise.withResolvers();
    answered = Promise.withResolvers();
    if (kind === "exact") market.first = asksExact("100");
    market.paid = async () => {
      arrived.resolve();
      await answered.promise;
      return delivers({ ok: 1 }, kind === "exact" ? RECEIPT : {});
    };
    running = pay();
    await arrived.promise;
    return warrant()!.id;
  };
  const finish = async () => {
    answered.resolve();
    return answerOf(await running);
  };

  test("no person, and no check by another hand", async () => {
    const id = await begin();
    for (const decision of ["release", "refund"] as const)
      expect(codeOf(await settle(stage, stage.operator, id, decision))).toBe("illegal_transition");
    expect(codeOf(await settle(stage, stage.operator, id, "partial_release", { releasedBps: 5_000 }))).toBe(
      "illegal_transition",
    );
    expect(codeOf(await verify(stage, caller, id))).toBe("illegal_transition");
    expect(warrant()).toMatchObject({ state: "held", version: 1 });
    expect(await finish()).toMatchObject({ state: "released" });
  });

  test("no sweep, though the deadline has passed; others are swept", async () => {
    await begin();
    ctx.clock.now += 601_000;
    expect(await sweepDeadlines(ctx, noFault)).toBe(0);
    expect(await finish()).toMatchObject({ state: "released" });
  });

  test("no recovery and no lease: the job leaves alone what is under way", async () => {
    await begin();
    expect(await recoverPurchases(ctx, onFault)).toBe(0);
    expect(await recoverAtStart(ctx, onFault)).toBe(0);
    expect(await finish()).toMatchObject({ state: "released" });
  });

  test("a check that outlives its lease is not undone by others", async () => {
    market.paid = () => delivers({ ok: 1 });
    await expect(pay(endingAfter(5))).rejects.toThrow("crashed");
    ctx.clock.now += CHECK_LEASE_MS;
    expect(await recoverOverdueChecks(ctx, onFault)).toBe(0);
    expect(warrant()?.state).toBe("verifying");
    expect(await recoverPurchases(ctx, onFault)).toBe(1);
    expect(warrant()?.state).toBe("released");
  });

  const kill = () => setAgentStatus(ctx, MACHINE, { agent_id: caller.agentId, status: "killed" });

  test("a kill freezes nothing of it; its release waits for a person", async () => {
    const id = await begin();
    must(await kill());
    await followAgents(ctx, noFault);
    expect(warrant()?.state).toBe("held");
    expect(await finish()).toMatchObject({ state: "escalated", reason_codes: ["agent_killed"], paid: false });
    expect(escalations()).toHaveLength(1);
    expect(codeOf(await settle(stage, stage.operator, id, "refund"))).toBe(200);
  });

  test("a kill when the chain has taken the money: only a release is left", async () => {
    market.findings = ["used"];
    const id = await begin("exact");
    must(await kill());
    expect(await finish()).toMatchObject({
      state: "escalated",
      reason_codes: ["agent_killed", "payment_irrevocable"],
    });
    expect(codeOf(await settle(stage, stage.operator, id, "refund"))).toBe("illegal_transition");
    expect(codeOf(await settle(stage, stage.operator, id, "release"))).toBe(200);
  });

  test("a kill before anything was signed: nothing is, and the hold returns", async () => {
    market.first = asksExact("100");
    const wallet = market.x402.wallets.sandbox!;
    const slow: Context = {
      ...ctx,
      x402: {
        ...market.x402,
        wallets: {
          live: null,
          sandbox: {
            ...wallet,
            async sign(order, now) {
              must(await kill());
              return wallet.sign(order, now);
            },
          },
        },
      },
    };
    expect(answerOf(await pay(slow))).toMatchObject({
      ...REFUNDED,
      state: "refunded",
      reason_codes: ["agent_killed"],
    });
    expect(market.sent).toEqual([]);
    expect(purchases()).toMatchObject([{ header: null, known: "unpaid" }]);
  });
});
