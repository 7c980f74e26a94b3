import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { isRefusal } from "../../../src/core/errors.ts";
import type { KeyCaller } from "../../../src/core/roles.ts";
import { recoverPurchases } from "../../../src/jobs/purchases.ts";
import type { Context } from "../../../src/services/context.ts";
import { forgetPurchase } from "../../../src/services/x402/begin.ts";
import { payForUrl } from "../../../src/services/x402/pay.ts";
import { reconcilePurchase } from "../../../src/services/x402/reconcile.ts";
import { refundPurchase } from "../../../src/services/x402/settle.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import {
  asksExact,
  asksVoucher,
  delivers,
  givesAway,
  type Market,
  openMarket,
  RECEIPT,
  SELLER_URL,
  silence,
} from "../../support/market.ts";
import { noFault } from "../../support/no-fault.ts";
import { codeOf, createCaller, createStage, idempotencyOf, type Stage } from "../../support/stage.ts";

/**
 * Another process ends a purchase while a request still works on it, as after a restart. The request does nothing more, nothing
 * is sent twice, and the same key replays the outcome.
 */

let market: Market;
let ctx: TestContext;
let other: Context;
let stage: Stage;
let caller: KeyCaller;
beforeEach(async () => {
  market = openMarket();
  ctx = createTestContext({ x402: market.x402 });
  // It does not know which purchases the first process works on.
  other = { ...ctx, x402: { ...market.x402, underWay: new Set() } };
  stage = await createStage(ctx, { mode: "sandbox", funds: "1000" });
  caller = await createCaller(stage);
});
afterEach(() => ctx.close());

const SPEC = { clauses: [{ kind: "json.jsonpath", path: "$.ok" }] };
const pay = (on: Context = ctx) =>
  payForUrl(on, caller, { url: SELLER_URL, max_amount: "100", spec: SPEC }, idempotencyOf("the key"));
const purchases = () => ctx.reader.purchases.list(stage, null, 10);
const warrants = () => ctx.reader.warrants.byCreation(stage, {}, {}, 10);
const recover = () => recoverPurchases(other, noFault);
const bodyOf = (answer: Awaited<ReturnType<typeof pay>>) => {
  if (isRefusal(answer)) throw new Error(answer.message);
  return JSON.parse(answer.body);
};
/** The request's context, in which the other process recovers at the given step. */
const recoveringAt = (x402: (real: Context["x402"]) => Partial<Context["x402"]>): Context => ({
  ...ctx,
  x402: { ...market.x402, ...x402(market.x402) },
});

const PAYMENTS = [
  ["voucher", asksVoucher("100")],
  ["exact", asksExact("100")],
] as const;

describe.each(PAYMENTS)("%s", (kind, first) => {
  beforeEach(() => {
    market.first = first;
    market.paid = () => delivers({ ok: 1 }, kind === "exact" ? RECEIPT : {});
  });
  const asking = () =>
    recoveringAt((real) => ({
      async ask(request) {
        expect(await recover()).toBe(1);
        return real.ask(request);
      },
    }));

  test("while the seller is asked: nothing is held, and the key is free", async () => {
    expect(codeOf(await pay(asking()))).toBe("idempotency_in_flight");
    expect([purchases(), warrants(), market.sent]).toEqual([[], [], []]);
    expect(bodyOf(await pay())).toMatchObject({ state: "released" });
    expect(market.sent).toHaveLength(1);
  });

  test("while the seller is asked, and the key is used again: the second alone buys", async () => {
    const both = recoveringAt((real) => ({
      async ask(request) {
        expect(await recover()).toBe(1);
        expect(bodyOf(await pay())).toMatchObject({ state: "released" });
        return real.ask(request);
      },
    }));
    expect(codeOf(await pay(both))).toBe("idempotency_in_flight");
    expect([purchases().length, warrants().length, market.sent.length]).toEqual([1, 1, 1]);
    expect(await pay()).toMatchObject({ replayed: true });
  });

  test("with the hold: nothing is sent, and the hold returns", async () => {
    const signing: Context = {
      ...ctx,
      tokens: {
        ...ctx.tokens,
        async sign(...given) {
          expect(await recover()).toBe(1);
          return ctx.tokens.sign(...given);
        },
      },
      x402: {
        ...market.x402,
        wallets: {
          live: null,
          sandbox: {
            ...market.x402.wallets.sandbox!,
            async sign(...given) {
              expect(await recover()).toBe(1);
              return market.x402.wallets.sandbox!.sign(...given);
            },
          },
        },
      },
    };
    expect(codeOf(await pay(signing))).toBe("idempotency_in_flight");
    expect([market.sent, purchases()[0]!.header]).toEqual([[], null]);
    expect(bodyOf(await pay())).toMatchObject({ state: "refunded", reason_codes: ["source_unreachable"] });
    expect(market.sent).toEqual([]);
  });

  test("while the paid answer is awaited: it is not sent again", async () => {
    const pauses: number[] = [];
    const paying = recoveringAt((real) => ({
      async pay(...given) {
        const paid = await real.pay(...given);
        expect(await recover()).toBe(1);
        return paid;
      },
      pause: async (ms) => void pauses.push(ms),
    }));
    expect(codeOf(await pay(paying))).toBe("idempotency_in_flight");
    expect(pauses).toEqual([]);
    const state = kind === "voucher" ? "refunded" : "escalated";
    const replay = await pay();
    expect(replay).toMatchObject({ replayed: true });
    expect(bodyOf(replay)).toMatchObject({ state });
    expect([market.sent.length, purchases().length]).toEqual([1, 1]);
  });

  test.each([1, 2])("while it is checked, %d at once: one decides", async (count) => {
    let others = count - 1;
    market.findings = ["used"];
    const checking: Context = {
      ...ctx,
      async evaluate(...given) {
        expect(await recover()).toBe(1);
        while (others-- > 0) expect(await recover()).toBe(0);
        return ctx.evaluate(...given);
      },
    };
    expect(codeOf(await pay(checking))).toBe("idempotency_in_flight");
    expect(bodyOf(await pay())).toMatchObject({ state: "released", paid: true });
    expect(ctx.reader.balances.list(stage)[0]!.balance).toMatchObject({ held: 0n, paid: 100n });
    expect(ctx.reader.checks.of(warrants()[0]!.id)).toHaveLength(1);
  });
});

describe("a recovery that has read the purchase before the request moved it on", () => {
  beforeEach(() => {
    market.first = asksExact("100");
    market.findings = ["used"];
  });

  test("forgets nothing that is held", async () => {
    const paying = recoveringAt((real) => ({
      async ask(request) {
        const [quoting] = purchases();
        market.paid = async () => {
          expect(await forgetPurchase(other, quoting!)).toBe(false);
          return delivers({ ok: 1 }, RECEIPT);
        };
        return real.ask(request);
      },
    }));
    expect(bodyOf(await pay(paying))).toMatchObject({ state: "released" });
  });

  test("refunds nothing that is signed", async () => {
    const { sandbox } = market.x402.wallets;
    const paying = recoveringAt(() => ({
      wallets: {
        live: null,
        sandbox: {
          ...sandbox!,
          async sign(...given) {
            const [held] = purchases();
            market.paid = async () => {
              const refunded = await refundPurchase(other, held!, { reasonCode: "source_unreachable" });
              expect(refunded).toMatchObject({ refused: "idempotency_in_flight" });
              return delivers({ ok: 1 }, RECEIPT);
            };
            return sandbox!.sign(...given);
          },
        },
      },
    }));
    expect(bodyOf(await pay(paying))).toMatchObject({ state: "released" });
  });

  test("ends what is answered once, while the chain is asked", async () => {
    market.paid = () => delivers({ ok: 1 }, RECEIPT);
    const asking = recoveringAt((real) => ({
      chains: {
        ...real.chains,
        async find(...given) {
          expect(await recover()).toBe(1);
          return real.chains.find(...given);
        },
      },
    }));
    expect(codeOf(await pay(asking))).toBe("idempotency_in_flight");
    expect(bodyOf(await pay())).toMatchObject({ state: "released" });
    expect(market.sent).toHaveLength(1);
  });

  test("learns of a payment once: a later answer about it changes nothing", async () => {
    market.paid = () => silence(true);
    market.findings = ["open", "used", "expired"];
    await pay();
    const [unknown] = purchases();
    expect(await reconcilePurchase(ctx, unknown!)).toBe("settled");
    expect(await reconcilePurchase(other, unknown!)).toBe("nothing");
    expect([warrants()[0]!.state, purchases()[0]!.known]).toEqual(["escalated", "paid"]);
  });
});

test("an answer that was stored although its commit reported a failure is stored once", async () => {
  market.paid = () => delivers({ ok: 1 });
  let failed = 0;
  const failing: Context = {
    ...ctx,
    store: {
      ...ctx.store,
      execute: (async (command: never) => {
        const isSigned = purchases()[0]?.phase === "signed";
        const answer = await ctx.store.execute(command);
        if (isSigned && failed++ === 0) throw new Error("the disk did not answer");
        return answer;
      }) as Context["store"]["execute"],
    },
  };
  expect(bodyOf(await pay(failing))).toMatchObject({ state: "released" });
  expect([failed, market.sent.length]).toEqual([1, 1]);
});

test("a first answer that asks for nothing, after recovery: the key is free", async () => {
  market.first = givesAway({ ok: 1 });
  const asking = recoveringAt((real) => ({
    async ask(request) {
      expect(await recover()).toBe(1);
      return real.ask(request);
    },
  }));
  expect(codeOf(await pay(asking))).toBe("idempotency_in_flight");
  expect(purchases()).toEqual([]);
  expect(bodyOf(await pay())).toMatchObject({ state: null, status: 200 });
});

test("what becomes known while the chain is asked again stays", async () => {
  market.first = asksExact("100");
  market.paid = () => silence(true);
  market.findings = ["open", "open"];
  expect(bodyOf(await pay())).toMatchObject({ state: "escalated" });
  const [unknown] = purchases();
  const late: Context = {
    ...ctx,
    x402: {
      ...market.x402,
      chains: {
        ...market.x402.chains,
        async find() {
          market.findings = ["expired"];
          expect(await reconcilePurchase(other, unknown!)).toBe("settled");
          return "away";
        },
      },
    },
  };
  expect(await reconcilePurchase(late, unknown!)).toBe("nothing");
  expect(purchases()).toMatchObject([{ known: "unpaid", nextCheckAt: null, chainSilentSince: null }]);
  expect(await reconcilePurchase(other, unknown!)).toBe("nothing");
  expect(warrants()[0]!.state).toBe("refunded");
});
