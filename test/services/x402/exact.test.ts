import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Finding } from "../../../src/core/x402/purchase.ts";
import { reconcilePurchases } from "../../../src/jobs/purchases.ts";
import type { PaidAnswer } from "../../../src/platform/x402-request.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { createSession } from "../../../src/services/admin/sessions.ts";
import { ledgerFigures } from "../../../src/services/figures.ts";
import type { Json, Reply } from "../../support/client.ts";
import {
  asksExact,
  asksExactOnBase,
  delivers,
  type Market,
  openMarket,
  PAY_TO,
  RECEIPT,
  SELLER_URL,
  silence,
  TRANSACTION,
} from "../../support/market.ts";
import { noContradiction, noFault } from "../../support/no-fault.ts";
import { must, type TestOrganisation } from "../../support/organisations.ts";
import { type ShellService, startTestShell } from "../../support/server.ts";

/** A payment on a chain cannot be called back, so whether it was made counts more than the policy (docs/x402, "Money that has moved cannot be called back"). */

let market: Market;
let service: ShellService;
let home: TestOrganisation;
beforeEach(async () => {
  market = openMarket();
  market.first = asksExact("100");
  service = startTestShell({ x402: market.x402 });
  home = await service.organisation();
});
afterEach(() => service.close());

const SPEC = { clauses: [{ kind: "json.jsonpath", path: "$.ok", equals: true }] };
const pay = (overrides: object = {}, options: object = {}): Promise<Reply> =>
  service.post(
    "/v1/x402/pay",
    { url: SELLER_URL, max_amount: "1000", spec: SPEC, ...overrides },
    { as: home.sandbox.as, ...options },
  );
const scope = () => ({ organisationId: home.id, mode: "sandbox" as const });
const purchases = () => service.ctx.reader.purchases.list(scope(), null, 100);
const escalations = () => service.ctx.reader.escalations.list(scope(), 100);
const reconcile = () => reconcilePurchases(service.ctx, noFault, noContradiction);

const GOOD = { ok: true };
const BAD = { ok: false };

describe("what is known decides", () => {
  type Row = readonly [
    what: string,
    paid: PaidAnswer,
    findings: readonly Finding[],
    expected: { state: string; codes: readonly string[]; known: string; by: string | null; paid?: boolean },
  ];
  const released = { state: "released", codes: [], known: "paid", paid: true };
  const irrevocable = (code: string, by: string) => ({
    state: "escalated",
    codes: [code, "payment_irrevocable"],
    known: "paid",
    by,
  });
  const unknown = (...codes: string[]) => ({
    state: "escalated",
    codes: [...codes, "payment_unknown"],
    known: "unknown",
    by: null,
  });
  const unreached = { state: "refunded", codes: ["source_unreachable"], known: "unpaid", by: null };
  const rows: readonly Row[] = [
    ["a receipt, the chain agrees", delivers(GOOD, RECEIPT), ["used"], { ...released, by: "chain" }],
    ["a receipt, no chain to ask", delivers(GOOD, RECEIPT), ["none"], { ...released, by: "receipt" }],
    ["no receipt, the chain says used", delivers(GOOD), ["used"], { ...released, by: "chain" }],
    [
      "a receipt that the chain hears of late",
      delivers(GOOD, RECEIPT),
      ["open", "open", "used"],
      { ...released, by: "chain" },
    ],
    ["bad goods, paid", delivers(BAD, RECEIPT), ["used"], irrevocable("value_mismatch", "chain")],
    [
      "bad goods, a receipt alone",
      delivers(BAD, RECEIPT),
      ["none"],
      irrevocable("value_mismatch", "receipt"),
    ],
    ["no answer, and used", silence(true), ["used"], irrevocable("source_timeout", "chain")],
    [
      "headers with a receipt, no body",
      silence(true, RECEIPT),
      ["none"],
      irrevocable("source_timeout", "receipt"),
    ],
    ["a receipt that the chain does not know", delivers(GOOD, RECEIPT), ["open"], unknown()],
    ["a receipt, the chain away", delivers(GOOD, RECEIPT), ["away"], unknown()],
    ["no receipt, no chain", delivers(GOOD), ["none"], unknown()],
    ["no receipt, not used yet", delivers(BAD), ["open"], unknown("value_mismatch")],
    ["no answer, no chain", silence(true), ["none"], unknown("source_timeout")],
    ["no answer, not used yet", silence(true), ["open"], unknown("source_timeout")],
    ["no answer, expired at a confirmed block", silence(true), ["expired"], { ...unreached, by: "chain" }],
    [
      "good goods that nobody took money for",
      delivers(GOOD),
      ["expired"],
      { state: "refunded", codes: ["payment_unused"], known: "unpaid", by: "chain" },
    ],
    ["never reached", silence(false), ["open"], unreached],
  ];
  for (const [what, paid, findings, expected] of rows) {
    test(what, async () => {
      market.paid = () => paid;
      market.findings = findings;
      const before = service.balance(home, "sandbox");
      const reply = await pay();
      const isPaid = expected.paid ?? false;
      expect(reply.status).toBe(200);
      expect(reply.body).toMatchObject({
        state: expected.state,
        paid: isPaid,
        released_bps: isPaid ? 10_000 : null,
        reason_codes: expected.codes,
        quoted: { amount: "100", asset: "USDC", payee: PAY_TO },
        status: paid.evidence.reached ? 200 : 0,
      });
      expect(purchases()).toMatchObject([
        {
          phase: "ended",
          known: expected.known,
          knownBy: expected.by,
          payer: market.x402.wallets.sandbox!.address,
        },
      ]);
      const { available, held, paid: credited } = service.balance(home, "sandbox");
      const waits = expected.state === "escalated";
      expect([before.available - available, held, credited]).toEqual([
        isPaid || waits ? 100n : 0n,
        waits ? 100n : 0n,
        isPaid ? 100n : 0n,
      ]);
      expect(market.sent).toHaveLength(1);
      expect(purchases()[0]!.nextCheckAt === null).toBe(expected.known !== "unknown");
      expect(escalations().map(({ reasonCodes }) => [...reasonCodes])).toEqual(
        waits ? [[...expected.codes] as never] : [],
      );
    });
  }
});

describe("good goods that nobody took money for", () => {
  const failuresOf = (id: string) => [
    service.ctx.reader.agents.get(id)!.failureCount,
    service.ctx.reader.agents.liveSession(id, service.clock.now)!.failureCount,
  ];

  test.each([
    ["pass: no failure, and none is forgotten", GOOD, ["payment_unused"], [1, 1]],
    ["fail: one more failure", BAD, ["value_mismatch"], [2, 2]],
  ])("%s", async (_, body, codes, failures) => {
    const agent = await home.addAgent({ mode: "sandbox", failure_budget: 10 });
    must(await createSession(service.ctx, MACHINE, { agent_id: agent.id, amount_ceiling: "1000" }));
    const named = () => pay({ agent_id: agent.id }, { as: agent.as });
    market.paid = () => silence(false);
    await named();
    expect(failuresOf(agent.id)).toEqual([1, 1]);
    market.paid = () => delivers(body);
    market.findings = ["expired"];
    const reply = await named();
    expect(reply.body).toMatchObject({ state: "refunded", paid: false, reason_codes: codes });
    const [check] = service.ctx.reader.checks.of(reply.body.warrant_id);
    expect([...check!.reasonCodes]).toEqual(codes as never);
    expect(failuresOf(agent.id)).toEqual(failures);
  });
});

describe("what is signed", () => {
  test.each([1, 2] as const)(
    "version %d: one authorization, kept before it is sent, sent as it is kept",
    async (version) => {
      market.first = asksExact("100", version);
      const kept: Json[] = [];
      market.paid = async () => {
        kept.push(...purchases().map(({ phase, header }) => ({ phase, header })));
        expect((await ledgerFigures(service.ctx)).purchases.unfinished).toBe(1);
        return delivers(GOOD, RECEIPT);
      };
      expect((await pay()).body.state).toBe("released");
      const [sent] = market.sent;
      expect(kept).toEqual([{ phase: "signed", header: sent }]);
      expect(sent!.name).toBe(version === 1 ? "X-PAYMENT" : "PAYMENT-SIGNATURE");
      const { authorization } = JSON.parse(Buffer.from(sent!.value, "base64").toString()).payload;
      const [purchase] = purchases();
      const now = service.clock.now / 1_000;
      expect(authorization).toMatchObject({
        from: purchase!.payer,
        value: "100",
        nonce: purchase!.nonce,
        validAfter: String(now - 600),
        validBefore: String(now + 60),
      });
      expect([purchase!.transaction, purchase!.attempt]).toEqual([TRANSACTION, "receipted"]);
    },
  );

  test.each([
    [5, 5_000, 600_000],
    [60, 60_000, 600_000],
    [3_600, 60_000, 3_600_000],
  ])(
    "a seller's %d s: the authorization holds for %d ms, the hold for %d ms",
    async (seconds, validMs, deadlineMs) => {
      market.first = asksExact("100", 2, { maxTimeoutSeconds: seconds });
      const { warrant_id } = (await pay()).body;
      expect(purchases()[0]!.validBefore).toBe(service.clock.now + validMs);
      expect(service.ctx.reader.warrants.find(warrant_id)!.deadline).toBe(service.clock.now + deadlineMs);
    },
  );

  test.each([
    ["a hold that takes longer than the seller allows", 60_000],
    ["a clock that jumps back after the hold", -1],
  ])("nothing, after %s: the hold returns", async (_, jump) => {
    const { store } = service.ctx;
    const execute = async (command: never) => {
      const answer: unknown = await store.execute(command);
      if (Object(answer).purchase?.phase === "held") service.clock.now += jump;
      return answer;
    };
    Object.assign(service.ctx, { store: { ...store, execute } });
    const before = service.balance(home, "sandbox");
    const options = { key: "late" };
    const reply = await pay({}, options);
    expect(reply.body).toMatchObject({
      ...{ state: "refunded", paid: false, passed: false, status: 0 },
      reason_codes: ["source_unreachable"],
    });
    expect(purchases()).toMatchObject([{ phase: "ended", known: "unpaid", header: null }]);
    expect(market.sent).toEqual([]);
    expect(service.balance(home, "sandbox")).toEqual(before);
    expect((await pay({}, options)).body).toEqual(reply.body);
  });

  test("no two payments have the same nonce", async () => {
    await Promise.all([pay(), pay(), pay()]);
    expect(new Set(purchases().map(({ nonce }) => nonce)).size).toBe(3);
  });

  test("the first entry that can be paid within the ceiling is taken", async () => {
    const entry = (amount: string, overrides: object = {}) => ({
      ...JSON.parse(Buffer.from(asksExact(amount).headers["payment-required"]!, "base64").toString())
        .accepts[0],
      ...overrides,
    });
    const accepts = [entry("1", { network: "eip155:8453" }), entry("2000"), entry("300"), entry("200")];
    market.first = {
      ...asksExact("1"),
      headers: {
        "payment-required": Buffer.from(JSON.stringify({ x402Version: 2, accepts })).toString("base64"),
      },
    };
    expect((await pay()).body.quoted.amount).toBe("300");
  });
});

describe("an unknown payment", () => {
  const unknown = async (findings: readonly Finding[], paid: PaidAnswer = silence(true)) => {
    market.paid = () => paid;
    market.findings = findings;
    const { body } = await pay();
    expect(body.reason_codes).toContain("payment_unknown");
    return body.warrant_id as string;
  };
  const operate = (path: string, body?: object) => service.post(path, body, { as: operator });
  let operator: Json;
  beforeEach(async () => {
    operator = await home.signIn(home.people.operator, "sandbox");
  });

  test("allows a person nothing: no release, partial release, refund or dispute", async () => {
    const id = await unknown(["open"]);
    const allRows = service.allRows(home);
    for (const [path, body] of [
      [`/v1/warrants/${id}/release`],
      [`/v1/warrants/${id}/refund`],
      [`/v1/warrants/${id}/partial`, { released_bps: 5_000 }],
      ...["release", "refund", "dispute"].map((decision) => [
        `/v1/console/escalations/${id}/resolve`,
        { decision },
      ]),
    ] as [string, object?][]) {
      const reply = await operate(path, body);
      expect([path, reply.code]).toEqual([path, "illegal_transition"]);
    }
    expect(service.allRows(home)).toEqual(allRows);
  });

  test("the chain says that it is open, and later expired: it is asked again, then the system refunds", async () => {
    const id = await unknown(["open", "open", "open", "expired"]);
    const waiting = async () => (await ledgerFigures(service.ctx)).purchases;
    expect(await reconcile()).toBe(0);
    expect(market.chainAsked).toBe(1);
    expect(await waiting()).toEqual({ unfinished: 0, unknown: 1, lateMs: 0, contradicted: 0 });
    service.clock.now = purchases()[0]!.nextCheckAt! + 500;
    expect(await waiting()).toEqual({ unfinished: 0, unknown: 1, lateMs: 500, contradicted: 0 });
    expect(await reconcile()).toBe(0);
    expect(purchases()[0]!.nextCheckAt).toBeGreaterThan(service.clock.now);
    service.clock.now += 600_000;
    expect(await reconcile()).toBe(0);
    expect(purchases()[0]!.nextCheckAt! - service.clock.now).toBeGreaterThan(290_000);
    service.clock.now += 600_000;
    expect(await reconcile()).toBe(1);
    expect(market.chainAsked).toBe(4);
    const { body } = await service.get(`/v1/warrants/${id}`, { as: home.sandbox.as });
    expect(body.state).toBe("refunded");
    expect(purchases()).toMatchObject([{ known: "unpaid", knownBy: "chain", nextCheckAt: null }]);
    expect(escalations()).toMatchObject([
      {
        ...{ status: "resolved", decision: "refund", resolvedBy: null },
        reasonCodes: ["source_timeout", "payment_unknown"],
      },
    ]);
    expect(service.ctx.reader.trace.of(id).at(-1)).toMatchObject({
      to: "refunded",
      actor: { kind: "system" },
    });
    expect(service.balance(home, "sandbox").held).toBe(0n);
    expect(await reconcile()).toBe(0);
    expect(await waiting()).toEqual({ unfinished: 0, unknown: 0, lateMs: 0, contradicted: 0 });
  });

  test("good goods, and later expired: the refund says that nobody took the money", async () => {
    await unknown(["open", "expired"], delivers(GOOD));
    service.clock.now += 60_000;
    expect(await reconcile()).toBe(1);
    expect(escalations()).toMatchObject([{ decision: "refund", reasonCodes: ["payment_unused"] }]);
  });

  test("the chain says used: it can only be released, by a person", async () => {
    const id = await unknown(["open", "used"], delivers(BAD));
    service.clock.now += 60_000;
    expect(await reconcile()).toBe(1);
    expect(escalations().map(({ status, reasonCodes }) => [status, [...reasonCodes]])).toEqual([
      ["open", ["value_mismatch", "payment_irrevocable"]],
      ["resolved", ["value_mismatch", "payment_unknown"]],
    ] as never);
    for (const [path, body] of [
      [`/v1/warrants/${id}/refund`],
      [`/v1/warrants/${id}/partial`, { released_bps: 5_000 }],
      [`/v1/console/escalations/${id}/resolve`, { decision: "dispute" }],
    ] as [string, object?][])
      expect((await operate(path, body)).code).toBe("illegal_transition");
    expect((await operate(`/v1/warrants/${id}/release`)).body.state).toBe("released");
    expect(service.balance(home, "sandbox")).toMatchObject({ held: 0n, paid: 100n });
  });

  test("the answer to the caller stays what it was", async () => {
    market.paid = () => silence(true);
    market.findings = ["open", "expired"];
    const first = await pay({}, { key: "once" });
    service.clock.now += 120_000;
    expect(await reconcile()).toBe(1);
    expect((await pay({}, { key: "once" })).text).toBe(first.text);
  });

  test("a chain that is away is asked again, and nothing moves", async () => {
    const id = await unknown(["away"]);
    for (let hours = 0; hours < 5; hours++) {
      service.clock.now += 3_600_000;
      expect(await reconcile()).toBe(0);
      expect(purchases()[0]!.nextCheckAt! - service.clock.now).toBeLessThanOrEqual(3_600_000);
    }
    expect(service.ctx.reader.warrants.find(id)?.state).toBe("escalated");
  });
});

test("a clock that was a year ahead, and is set back, does not put a payment off for a year", async () => {
  market.paid = () => silence(true);
  market.findings = ["open", "open", "expired"];
  await pay();
  const real = service.clock.now;
  service.clock.now += 365 * 24 * 3_600_000;
  expect(await reconcile()).toBe(0);
  service.clock.now = real;
  expect(await reconcile()).toBe(1);
  expect(purchases()).toMatchObject([{ known: "unpaid", nextCheckAt: null }]);
});

describe("the wallet", () => {
  test("fifty at once against a balance for ten: ten are paid, forty refused, and nothing is left of them", async () => {
    market.balance = 1_000n;
    market.findings = ["open"];
    market.paid = () => silence(true);
    const replies = await Promise.all(Array.from({ length: 50 }, () => pay()));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(10);
    expect(replies.filter(({ code }) => code === "insufficient_funds")).toHaveLength(40);
    expect([market.sent.length, purchases().length]).toEqual([10, 10]);
    expect(service.balance(home, "sandbox").held).toBe(1_000n);
  });

  test("an authorization counts until it is known; one that was never used no longer counts", async () => {
    market.balance = 150n;
    market.findings = ["open"];
    market.paid = () => silence(true);
    expect((await pay()).status).toBe(200);
    expect((await pay()).code).toBe("insufficient_funds");
    market.findings = ["expired"];
    service.clock.now += 120_000;
    expect(await reconcile()).toBe(1);
    market.paid = () => silence(false);
    expect((await pay()).body.state).toBe("refunded");
    expect((await pay()).status).toBe(200);
  });

  test("a payment that was made after the balance was read is still subtracted from it", async () => {
    market.balance = 150n;
    market.findings = ["used"];
    market.paid = () => delivers(GOOD, RECEIPT);
    expect((await pay()).body.state).toBe("released");
    expect((await pay()).code).toBe("insufficient_funds");
    service.clock.now += 1;
    market.balance = 100n;
    expect((await pay()).body.state).toBe("released");
  });

  for (const [what, network, aheadMs, code] of [
    ["two minutes ahead of the newest block", "main", 120_000, null],
    ["further ahead", "main", 120_001, "internal_error"],
    ["behind it", "main", -3_600_000, null],
    ["far ahead of a test network's", "test", 365 * 24 * 3_600_000, null],
  ] as const) {
    test(`a clock ${what}: ${code === null ? "paid" : "nothing is held, nor signed"}`, async () => {
      const mode = network === "main" ? "live" : "sandbox";
      if (mode === "live") market.first = asksExactOnBase("100");
      market.balance = 1_000n;
      market.blockTime = service.clock.now - aheadMs;
      market.findings = ["used"];
      market.paid = () => delivers(GOOD);
      const before = service.balance(home, mode);
      const reply = await pay({}, { as: home[mode].as });
      expect([reply.code, market.sent.length]).toEqual([code, code === null ? 1 : 0] as never);
      if (code === null) return expect(reply.body.state).toBe("released");
      expect(reply.body.error.message).toContain("eip155:8453");
      const kept = service.ctx.reader.purchases.list({ organisationId: home.id, mode }, null, 10);
      expect([service.balance(home, mode), kept]).toEqual([before, []]);
    });
  }

  test("without a chain to ask, the ledger alone decides", async () => {
    market.balance = null;
    market.paid = () => delivers(GOOD, RECEIPT);
    expect((await pay()).body.state).toBe("released");
  });
});

test("a session is charged, and given back what was not paid", async () => {
  const agent = await home.addAgent({ mode: "sandbox" });
  must(await createSession(service.ctx, MACHINE, { agent_id: agent.id, amount_ceiling: "250" }));
  const spent = () => service.ctx.reader.agents.liveSession(agent.id, service.clock.now)!.amountSpent;
  const as = agent.as;
  market.findings = ["open", "expired"];
  market.paid = () => silence(true);
  await pay({ agent_id: agent.id }, { as });
  expect(spent()).toBe(100n);
  service.clock.now += 120_000;
  await reconcile();
  expect(spent()).toBe(0n);
});
