import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { reachedEvidence } from "../../../src/core/clauses/evidence.ts";
import { isRefusal } from "../../../src/core/errors.ts";
import type { Instance } from "../../../src/core/instance.ts";
import type { Caller, KeyCaller } from "../../../src/core/roles.ts";
import type { Finding, Purchase } from "../../../src/core/x402/purchase.ts";
import { followAgents } from "../../../src/jobs/agents.ts";
import { sweepDeadlines } from "../../../src/jobs/deadlines.ts";
import {
  reconcilePurchases,
  recoverPurchases,
  recoverPurchasesAtStart,
} from "../../../src/jobs/purchases.ts";
import { recoverAtStart, recoverOverdueChecks } from "../../../src/jobs/recover.ts";
import { setAgentStatus } from "../../../src/services/admin/agents.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { createSession } from "../../../src/services/admin/sessions.ts";
import type { Context } from "../../../src/services/context.ts";
import { CHECK_LEASE_MS } from "../../../src/services/warrants/interrupt.ts";
import { payForUrl } from "../../../src/services/x402/pay.ts";
import { recoveryOf } from "../../../src/services/x402/recover.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { endingAfter } from "../../support/ending.ts";
import { withCommands } from "../../support/failing-commands.ts";
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
import { noContradiction, noFault } from "../../support/no-fault.ts";
import { markRestored } from "../../support/restored.ts";
import {
  codeOf,
  createCaller,
  createStage,
  idempotencyOf,
  must,
  type Stage,
  settle,
  verify,
} from "../../support/stage.ts";

/** A crash after each commit of a purchase, what recovery does then, and what must not happen while a purchase is under way. */

let market: Market;
let ctx: TestContext;
let stage: Stage;
let caller: KeyCaller;
beforeEach(async () => {
  market = openMarket();
  ctx = createTestContext({ x402: market.x402 });
  stage = await createStage(ctx, { mode: "sandbox", funds: "1000" });
  caller = await createCaller(stage);
  must(await createSession(ctx, MACHINE, { agent_id: caller.agentId, amount_ceiling: "1000" }));
});
afterEach(() => ctx.close());

const SPEC = { clauses: [{ kind: "json.jsonpath", path: "$.ok" }] };
const ORDER = { url: SELLER_URL, max_amount: "100", spec: SPEC };
const pay = (on: Context = ctx, idempotency = idempotencyOf("the key")) =>
  payForUrl(on, caller, { ...ORDER, agent_id: caller.agentId }, idempotency);

const purchases = () => ctx.reader.purchases.list(stage, null, 10);
const warrant = () => ctx.reader.warrants.byCreation(stage, {}, {}, 1)[0];
const escalations = () => ctx.reader.escalations.list(stage, 10);
const balance = () => ctx.reader.balances.list(stage)[0]!.balance;
/** The failures of the agent, and of its session. */
const failures = () => {
  const { agents } = ctx.reader;
  return [agents.get(caller.agentId), agents.liveSession(caller.agentId, ctx.now())].map(
    (counted) => counted?.failureCount,
  );
};
const onFault = (error: unknown): never => {
  throw error;
};
const answerOf = async (answer: Awaited<ReturnType<typeof pay>>) => {
  if (isRefusal(answer)) throw new Error(answer.message);
  const bytes = await answer.content?.read();
  return { ...JSON.parse(answer.body), body: Buffer.from(bytes ?? []).toString() };
};

type Row = readonly [
  commits: number,
  left: string,
  state: string | null,
  expected: { readonly answer?: object; readonly sent: number; readonly atStart: boolean },
];

/** A crash after so many commits, and the state after recovery. */
function walk(kind: "voucher" | "exact", findings: readonly Finding[], rows: readonly Row[]): void {
  for (const [commits, left, state, { answer, sent, atStart }] of rows) {
    test(`${kind}: cut off ${left}: ${state ?? "nothing held"}`, async () => {
      market.first = kind === "voucher" ? asksVoucher("100") : asksExact("100");
      market.paid = () => delivers({ ok: 1 }, kind === "exact" ? RECEIPT : {});
      market.findings = findings;
      await expect(pay(endingAfter(ctx, commits))).rejects.toThrow("crashed");
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
        expect(await answerOf(await pay())).toMatchObject({ state: "released" });
        expect(market.sent).toHaveLength(sent + 1);
        return;
      }
      const replayed = await pay();
      expect(await answerOf(replayed)).toMatchObject({ ...answer, state });
      expect(replayed).toMatchObject({ replayed: true, status: 200 });
      expect([market.sent.length, purchases().length]).toEqual([sent, 1]);
      expect(purchases()[0]!.phase).toBe("ended");
      const waits = state === "escalated";
      expect(balance()).toMatchObject({ held: waits ? 100n : 0n, paid: state === "released" ? 100n : 0n });
      expect(failures()).toEqual([0, 0]);
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

  test.each(["voucher", "exact"] as const)(
    "%s: a seller that does not answer counts as a failure, a crash of ours does not",
    async (kind) => {
      market.first = kind === "voucher" ? asksVoucher("100") : asksExact("100");
      market.paid = () => silence(true);
      await expect(pay(endingAfter(ctx, 3), idempotencyOf("cut off"))).rejects.toThrow("crashed");
      expect(await recoverPurchases(ctx, onFault)).toBe(1);
      expect(failures()).toEqual([0, 0]);
      must(await pay());
      expect(failures()).toEqual([1, 1]);
    },
  );

  test("before the first commit leaves nothing", async () => {
    await expect(pay(endingAfter(ctx, 0))).rejects.toThrow("crashed");
    expect([purchases(), market.asked]).toEqual([[], []]);
    expect(await answerOf(await pay())).toMatchObject({ state: "escalated" });
  });

  test("with nothing to pay leaves nothing", async () => {
    market.first = { ...asksVoucher("100"), status: 200 };
    await expect(pay(endingAfter(ctx, 1))).rejects.toThrow("crashed");
    expect(await recoverPurchasesAtStart(ctx, onFault)).toBe(1);
    expect(await answerOf(await pay())).toMatchObject({ state: null, status: 200 });
  });

  test("where no answer came: the hold returns, or waits until the payment is known", async () => {
    market.paid = () => silence(true);
    await expect(pay(endingAfter(ctx, 4))).rejects.toThrow("crashed");
    expect(await recoverPurchases(ctx, onFault)).toBe(1);
    expect(await answerOf(await pay())).toMatchObject({ ...REFUNDED, state: "refunded" });
    market.first = asksExact("100");
    market.findings = ["open"];
    await expect(pay(endingAfter(ctx, 5), idempotencyOf("another"))).rejects.toThrow("crashed");
    expect(await recoverPurchases(ctx, onFault)).toBe(1);
    expect(warrant()?.state).toBe("escalated");
    expect(purchases()[0]).toMatchObject({ known: "unknown", nextCheckAt: expect.any(Number) });
  });

  test.each(["generated_at", "Last-Modified"])(
    "the freshness of an answer, by its %s, is judged at the time when it came",
    async (by) => {
      const spec = { clauses: [{ kind: "data.freshness", maxAgeSeconds: 60 }] };
      const fresh = (on: Context) =>
        payForUrl(on, caller, { url: SELLER_URL, max_amount: "100", spec }, idempotencyOf("fresh"));
      const at = ctx.clock.now;
      market.paid = () =>
        by === "generated_at"
          ? delivers({ generated_at: new Date(at).toISOString() })
          : {
              ...delivers({}),
              evidence: reachedEvidence({ status: 200, body: Buffer.from("{}"), lastModifiedAt: at }),
            };
      await expect(fresh(endingAfter(ctx, 4))).rejects.toThrow("crashed");
      ctx.clock.now += 7 * 24 * 3_600_000;
      expect(await recoverPurchases(ctx, onFault)).toBe(1);
      expect(await answerOf(await fresh(ctx))).toMatchObject({ state: "released", passed: true });
    },
  );
});

test.each([
  ["held", "voucher", "refund"],
  ["signed", "exact", "escalate"],
  ["answered", "exact", "settle"],
  ["answered", "voucher", "settle"],
  ["quoting", "voucher", "forget"],
] as const)(
  "recovery of what is %s (%s): nothing that moves live money in a copy",
  (phase, kind, recovery) => {
    const { instance } = ctx.reader;
    const purchase = { phase, quote: { pays: { kind } }, nonce: null, createdAt: 0 } as unknown as Purchase;
    const of = (mode: "live" | "sandbox", restored: Partial<Instance>) =>
      recoveryOf({ ...instance.get(), ...restored }, { ...purchase, mode });
    const awaits = { restoredAt: 1, acknowledgedAt: null };
    expect(of("live", {})).toBe(recovery);
    const movesMoney = recovery === "refund" || recovery === "settle";
    expect(of("live", awaits)).toBe(movesMoney ? "nothing" : recovery);
    expect(of("sandbox", awaits)).toBe(recovery);
    expect(of("live", { restoredAt: 1, acknowledgedAt: 2 })).toBe(recovery);
  },
);

describe("a copy that was restored", () => {
  const reconcile = () => reconcilePurchases(ctx, onFault, noContradiction);

  for (const isAcknowledged of [false, true]) {
    for (const [finding, state, known] of [
      ["used", "escalated", "paid"],
      ["expired", "refunded", "unpaid"],
    ] as const) {
      test(`holds what the original may have paid since: ${finding}${isAcknowledged ? ", acknowledged" : ""}`, async () => {
        market.first = asksExact("100");
        await expect(pay(endingAfter(ctx, 2))).rejects.toThrow("crashed");
        ctx.clock.now += 120_000;
        // The original's clock may have been ahead. So until the restore is acknowledged, everything that is held counts.
        await (isAcknowledged
          ? markRestored(ctx, { acknowledgedAt: ctx.clock.now })
          : markRestored(ctx, { restoredAt: ctx.clock.now - 3_600_000 }));
        expect(await recoverPurchasesAtStart(ctx, onFault)).toBe(1);
        expect(warrant()?.state).toBe("escalated");
        expect(purchases()).toMatchObject([{ phase: "ended", known: "unknown", header: null }]);
        expect((await answerOf(await pay())).reason_codes).toContain("payment_unknown");
        expect([market.sent, balance().held]).toEqual([[], 100n]);
        market.findings = [finding];
        ctx.clock.now += 120_000;
        expect(await reconcile()).toBe(1);
        expect([warrant()?.state, purchases()[0]!.known]).toEqual([state, known]);
      });
    }
  }

  test("returns holds for vouchers, and those of purchases that began after the acknowledgement", async () => {
    await expect(pay(endingAfter(ctx, 2))).rejects.toThrow("crashed");
    await markRestored(ctx, { acknowledgedAt: ctx.clock.now });
    expect(await recoverPurchasesAtStart(ctx, onFault)).toBe(1);
    expect([warrant()?.state, purchases()[0]!.known]).toEqual(["refunded", "unpaid"]);
    ctx.clock.now += 1;
    market.first = asksExact("100");
    await expect(pay(endingAfter(ctx, 2), idempotencyOf("later"))).rejects.toThrow("crashed");
    expect(await recoverPurchasesAtStart(ctx, onFault)).toBe(1);
    expect(warrant()?.state).toBe("refunded");
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
    expect(await answerOf(await pay())).toMatchObject({ state: "refunded" });
  });

  /** The same service, but its ledger fails so many times to store the seller's answer. */
  const failingToKeep = (times: number, pauses: number[]): Context => {
    let left = times;
    const failing = withCommands(ctx, async (_, go) => {
      if (purchases()[0]?.phase === "signed" && left-- > 0) throw new Error("database or disk is full");
      return go();
    });
    return { ...failing, x402: { ...market.x402, pause: async (ms) => void pauses.push(ms) } };
  };

  test("of the ledger when the answer comes loses no answer: it is stored as soon as that is possible", async () => {
    const pauses: number[] = [];
    market.paid = () => delivers({ ok: 1 });
    expect(await answerOf(await pay(failingToKeep(2, pauses)))).toMatchObject(RELEASED);
    expect(pauses).toEqual([1_000, 2_000]);
    expect(market.sent).toHaveLength(1);
  });

  test("of the ledger that lasts ends as a crash does", async () => {
    const pauses: number[] = [];
    market.paid = () => delivers({ ok: 1 });
    await expect(pay(failingToKeep(99, pauses))).rejects.toThrow("database or disk is full");
    expect(pauses).toEqual([1_000, 2_000, 4_000, 8_000]);
    expect(market.sent).toHaveLength(1);
    expect(await recoverPurchases(ctx, onFault)).toBe(1);
    expect(await answerOf(await pay())).toMatchObject({ ...REFUNDED, state: "refunded" });
  });

  test("of one purchase does not stop the others", async () => {
    for (const key of ["one", "two", "three"])
      await expect(pay(endingAfter(ctx, 2), idempotencyOf(key))).rejects.toThrow("crashed");
    const [doomed] = purchases();
    const broken = withCommands(ctx, async ({ needs }, go) => {
      if (needs.purchase === doomed!.id) throw new Error("broken");
      return go();
    });
    const reported: string[] = [];
    expect(await recoverPurchases(broken, (error, id) => reported.push(`${id}: ${error}`))).toBe(2);
    expect(reported).toEqual([`${doomed!.id}: Error: broken`]);
    expect(await recoverPurchases(ctx, onFault)).toBe(1);
  });

  test("of the evaluator only delays the end; it makes no second payment", async () => {
    market.paid = () => delivers({ ok: 1 });
    const busy: Context = {
      ...ctx,
      evaluate: () => Promise.reject({ refused: "rate_limit_exceeded", message: "busy" }),
    };
    expect(codeOf(await pay(busy))).toBe("rate_limit_exceeded");
    expect(warrant()?.state).toBe("verifying");
    expect(codeOf(await pay())).toBe("idempotency_in_flight");
    expect(await recoverPurchases(ctx, onFault)).toBe(1);
    expect(await answerOf(await pay())).toMatchObject({ state: "released", body: '{"ok":1}' });
    expect(market.sent).toHaveLength(1);
  });
});

test("a check that was cut off needs no other one, once the chain says that nothing was paid", async () => {
  market.first = asksExact("100");
  market.paid = () => silence(true);
  market.findings = ["open"];
  const busy: Context = {
    ...ctx,
    evaluate: () => Promise.reject({ refused: "rate_limit_exceeded", message: "busy" }),
  };
  expect(codeOf(await pay(busy))).toBe("rate_limit_exceeded");
  expect(warrant()?.state).toBe("verifying");
  market.findings = ["expired"];
  expect(await recoverPurchases(ctx, onFault)).toBe(1);
  // The audit, when the test ends, must find nothing wrong with a refund that no check led to.
  expect([warrant()?.state, ctx.reader.checks.of(warrant()!.id)]).toEqual(["refunded", []]);
});

describe("while a purchase is under way, nothing comes between", () => {
  let arrived: PromiseWithResolvers<void>;
  let answered: PromiseWithResolvers<void>;
  let running: ReturnType<typeof pay>;
  /** A purchase that was signed and sent, and waits for the seller's answer. */
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

  test("no person, and no verify of somebody else", async () => {
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

  test("no recovery and no lease: the job does nothing to a purchase under way", async () => {
    await begin();
    expect(await recoverPurchases(ctx, onFault)).toBe(0);
    expect(await recoverAtStart(ctx, onFault)).toBe(0);
    expect(await finish()).toMatchObject({ state: "released" });
  });

  test("a check that outlives its lease is not undone by others", async () => {
    market.paid = () => delivers({ ok: 1 });
    await expect(pay(endingAfter(ctx, 5))).rejects.toThrow("crashed");
    ctx.clock.now += CHECK_LEASE_MS;
    expect(await recoverOverdueChecks(ctx, onFault)).toBe(0);
    expect(warrant()?.state).toBe("verifying");
    expect(await recoverPurchases(ctx, onFault)).toBe(1);
    expect(warrant()?.state).toBe("released");
  });

  const kill = () => setAgentStatus(ctx, MACHINE, { agent_id: caller.agentId, status: "killed" });

  test("a kill does not freeze it; its release waits for a person", async () => {
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

  test.each<[what: string, isNamed: boolean, payer: () => Caller]>([
    ["that its key names", true, () => caller],
    ["whose key names none", false, () => caller],
    ["that a person names", true, () => stage.operator],
  ])(
    "a kill before anything was signed, of an agent %s: nothing is, and the hold returns",
    async (_, isNamed, payer) => {
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
      const order = isNamed ? { ...ORDER, agent_id: caller.agentId } : ORDER;
      expect(await answerOf(await payForUrl(slow, payer(), order, idempotencyOf("killed")))).toMatchObject({
        ...REFUNDED,
        state: "refunded",
        reason_codes: ["agent_killed"],
      });
      expect(warrant()?.agentId).toBe(isNamed ? caller.agentId : null);
      expect(market.sent).toEqual([]);
      expect(purchases()).toMatchObject([{ header: null, known: "unpaid" }]);
    },
  );
});
