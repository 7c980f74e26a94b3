import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { setAgentStatus } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { acknowledgeRestore } from "../../src/services/admin/backup.ts";
import { revokeKey } from "../../src/services/admin/keys.ts";
import { createSession, revokeSession } from "../../src/services/admin/sessions.ts";
import { setKillSwitch } from "../../src/services/admin/switches.ts";
import { freshKey, type Reply } from "../support/client.ts";
import {
  asks,
  asksExact,
  asksVoucher,
  delivers,
  encoded,
  type Market,
  openMarket,
  RECEIPT,
  SELLER_URL,
  silence,
} from "../support/market.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { setThreshold } from "../support/passkeys.ts";
import { markRestored } from "../support/restored.ts";
import { type Refused, type ShellService, startTestShell } from "../support/server.ts";

/** POST /v1/x402/pay, refused: nothing is held, no purchase is left, no key is used up and nobody was paid. */

let market: Market;
let service: ShellService;
let home: TestOrganisation;
beforeAll(async () => {
  market = openMarket();
  service = startTestShell({ x402: market.x402 });
  home = await service.organisation();
});
afterAll(() => service?.close());
beforeEach(() => {
  market.first = asksVoucher("100");
  market.paid = () => delivers({});
  market.findings = ["none"];
  market.balance = null;
});

const body = (overrides: object = {}) => ({
  url: SELLER_URL,
  max_amount: "1000",
  spec: { clauses: [{ kind: "http.status", equals: 200 }] },
  ...overrides,
});

/** Expects the refusal, and that nothing changed. The same key then buys, so it was not used up. */
async function refuses(refused: Refused, overrides: object = {}, as = home.sandbox.as): Promise<void> {
  const sent = market.sent.length;
  await service.refuses(home, refused, () =>
    service.post("/v1/x402/pay", body(overrides), { as, key: "the-key" }),
  );
  expect(market.sent.length).toBe(sent);
  expect(market.x402.underWay.size).toBe(0);
}

describe("the body", () => {
  const wrong: readonly (readonly [what: string, overrides: object, start: string])[] = [
    ["no url", { url: undefined }, "url: is required"],
    ["another scheme", { url: "ftp://seller.example/" }, "url: must be an http or https URL"],
    ["a file", { url: "file:///etc/passwd" }, "url"],
    ["credentials", { url: "http://a:b@seller.example/" }, "url: must not carry credentials"],
    ["a long url", { url: `http://seller.example/${"x".repeat(2_048)}` }, "url: must be at most 2048"],
    ["another method", { method: "PUT" }, "method: must be one of GET, POST"],
    ["a number", { max_amount: 100 }, "max_amount: must be a string of digits"],
    ["a fraction", { max_amount: "1.5" }, "max_amount"],
    ["too much", { max_amount: "9223372036854775808" }, "max_amount"],
    ["an asset with a space", { asset: "U SD" }, "asset: must be 1 to 32 characters"],
    ["a long asset", { asset: "x".repeat(33) }, "asset"],
    ["no clauses", { spec: { clauses: [] } }, "spec.clauses"],
    ["a ninth kind", { spec: { clauses: [{ kind: "custom" }] } }, "spec.clauses.0.kind"],
    [
      "an unknown schema",
      { spec: { clauses: [{ kind: "json.schema", schema: "no" }] } },
      "spec.clauses.0.schema",
    ],
    ["an unknown field", { amount: "1" }, "amount: unknown field"],
    ["headers in a list", { headers: ["a"] }, "headers: must be an object"],
    ["a header that is no text", { headers: { a: 1 } }, "headers.a: must be at most 4096 printable"],
    ["a header without a name", { headers: { "": "x" } }, "headers.: is not the name of a header"],
    ["a name with a space", { headers: { "a b": "x" } }, "headers.a b: is not the name of a header"],
    ["a value with a line", { headers: { a: "x\r\nHost: y" } }, "headers.a: must be at most 4096 printable"],
    ["a value with a tab", { headers: { a: "x\ty" } }, "headers.a: must be at most 4096 printable"],
    ["a long value", { headers: { a: "x".repeat(4_097) } }, "headers.a"],
    ["a name twice", { headers: { Accept: "a", accept: "b" } }, "headers.accept: is there twice"],
    [
      "many headers",
      { headers: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`h${i}`, ""])) },
      "headers",
    ],
  ];
  for (const [what, overrides, start] of wrong)
    test(what, () => refuses([400, "validation_failed", start], overrides));

  const ours = [
    ...[
      "Host",
      "Connection",
      "Keep-Alive",
      "Proxy-Authorization",
      "TE",
      "Trailer",
      "Transfer-Encoding",
      "Upgrade",
    ],
    ...[
      "Content-Length",
      "X-PAYMENT",
      "PAYMENT-SIGNATURE",
      "PAYMENT-REQUIRED",
      "x-payment-response",
      "payment-response",
    ],
  ];
  for (const name of ours) {
    test(`the caller may not set the header ${name}`, () =>
      refuses([400, "validation_failed", `headers.${name}: is not for the caller`], {
        headers: { [name]: "x" },
      }));
  }

  test("where it is invalid, no seller is asked", () => expect(market.asked).toEqual([]));
});

describe("the first request", () => {
  test("that fails", async () => {
    market.first = { problem: "it could not be reached" };
    await refuses([400, "upstream_unreachable"]);
  });

  const unreadable: readonly (readonly [what: string, first: Market["first"]])[] = [
    ["a number", asks({ amount: 100, asset: "USDC", payee: "acme" })],
    ["negative", asks({ amount: "-1", asset: "USDC", payee: "acme" })],
    ["nothing", asks({ amount: "0", asset: "USDC", payee: "acme" })],
    ["HTML", asks("<html><body>Pay!</body></html>")],
    ["no body", asks("")],
    ["a header that is no base64", asks({}, { "payment-required": "%%%" })],
    ["an empty list", asks({ x402Version: 1, accepts: [] })],
    [
      "a header of the other version",
      asks({}, { "payment-required": encoded({ x402Version: 1, accepts: [] }) }),
    ],
    ["a payee too long", asksVoucher("100", "USDC", "x".repeat(513))],
  ];
  for (const [what, first] of unreadable) {
    test(`a challenge that cannot be read: ${what}`, async () => {
      market.first = first;
      await refuses([400, "x402_challenge_invalid"]);
    });
  }

  const unpayable: readonly (readonly [what: string, first: Market["first"]])[] = [
    ["another scheme", asksExact("100", 2, { scheme: "upto" })],
    ["an unknown network", asksExact("100", 2, { network: "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp" })],
    ["a token that is not known", asksExact("100", 2, { asset: `0x${"99".repeat(20)}` })],
    ["a main network", asksExact("100", 2, { network: "eip155:8453" })],
    ["another asset, paid in the ledger", asksVoucher("1", "WBTC")],
    ["another domain", asksExact("100", 2, { extra: { name: "Fake", version: "2" } })],
  ];
  for (const [what, first] of unpayable) {
    test(`a challenge that the sandbox cannot pay: ${what}`, async () => {
      market.first = first;
      await refuses([400, "x402_scheme_unsupported"]);
    });
  }

  test("live does not pay on a test network", async () => {
    market.first = asksExact("100");
    await refuses([400, "x402_scheme_unsupported"], {}, home.live.as);
  });

  test.each([
    ["a voucher", asksVoucher("1001")],
    ["exact", asksExact("1001")],
    ["beyond every amount", asksVoucher("9".repeat(40))],
  ])("a quote above max_amount: %s", async (_, first) => {
    market.first = first;
    await refuses([403, "x402_quote_above_max"]);
  });
});

describe("the hold", () => {
  test("above what is available", async () => {
    market.first = asksVoucher("1000001");
    await refuses([402, "insufficient_funds", "1000000 USDC is available"], { max_amount: "1000001" });
    market.first = asksVoucher("1", "EUR");
    await refuses([402, "insufficient_funds", "0 EUR"], { asset: "EUR" });
  });

  test("above what the wallet has", async () => {
    market.first = asksExact("100");
    market.balance = 99n;
    await refuses([402, "insufficient_funds", "The wallet that pays on the chain does not cover 100 USDC"]);
  });

  test("above the session, or the policy's maximum", async () => {
    const agent = await home.addAgent({ mode: "sandbox" });
    const named = { agent_id: agent.id };
    must(await createSession(service.ctx, MACHINE, { ...named, amount_ceiling: "99" }));
    await refuses([403, "session_ceiling_exceeded"], named, agent.as);
    must(await createSession(service.ctx, MACHINE, { ...named, amount_ceiling: "100" }));
    await home.addPolicy({ bands: [{ minScore: 0, outcome: "refund" }], maxAmount: "99" }, named);
    await refuses([403, "policy_max_amount_exceeded"], named, agent.as);
  });
});

describe("who pays", () => {
  test("a stranger, a viewer, another agent's key", async () => {
    await refuses([401, "not_authenticated"], {}, {});
    await refuses([403, "insufficient_role"], {}, home.people.viewer.as);
    const other = await home.addAgent({ mode: "sandbox" });
    await refuses([403, "agent_key_mismatch"], { agent_id: other.id });
    await refuses([404, "agent_not_found"], { agent_id: home.live.id });
  });

  test("refusals that need no quote come before the seller is asked", async () => {
    const agent = await home.addAgent({ mode: "sandbox", must_be_named: true });
    const named = { agent_id: agent.id };
    const asked = market.asked.length;
    await refuses([403, "agent_id_required"], {}, agent.as);
    const session = must(await createSession(service.ctx, MACHINE, { ...named, amount_ceiling: "1000" }));
    must(await revokeSession(service.ctx, MACHINE, { session_id: session.id }));
    await refuses([403, "session_revoked"], named, agent.as);
    must(await createSession(service.ctx, MACHINE, { ...named, amount_ceiling: "0" }));
    must(await setAgentStatus(service.ctx, MACHINE, { ...named, status: "paused" }));
    await refuses([403, "agent_not_active"], named, agent.as);
    expect(market.asked.length).toBe(asked);
  });

  test("a session that has ended is refused before the seller is asked", async () => {
    const { ctx } = service;
    const agent = await home.addAgent({ mode: "sandbox" });
    const named = { agent_id: agent.id };
    const session = async (rest: object) =>
      must(await createSession(ctx, MACHINE, { ...named, amount_ceiling: "1000", ...rest }));
    const buys = () => service.post("/v1/x402/pay", body(named), { as: agent.as });
    const asked = (): number => market.asked.length;

    await session({ warrant_limit: 1 });
    expect((await buys()).body.state).toBe("released");
    await session({ warrant_limit: 1, failure_budget: 1 });
    market.paid = () => silence(false);
    expect((await buys()).body.state).toBe("refunded");
    let before = asked();
    await refuses([403, "session_failure_budget_spent"], named, agent.as);
    await session({ warrant_limit: 1 });
    market.paid = () => delivers({});
    expect((await buys()).body.state).toBe("released");
    before += 1;
    await refuses([403, "session_warrant_limit_reached"], named, agent.as);
    await session({ expires_at: service.timeIn(1_000) });
    service.clock.now += 1_000;
    await refuses([403, "session_expired"], named, agent.as);
    await session({});
    await refuses([403, "session_ceiling_exceeded"], { ...named, asset: "EUR" }, agent.as);
    expect(asked()).toBe(before);
  });
});

describe("what changes while the seller is asked", () => {
  type Agent = Awaited<ReturnType<TestOrganisation["addAgent"]>>;
  let buyer: TestOrganisation;
  let ask: Market["x402"]["ask"];
  beforeEach(async () => {
    buyer = await service.organisation();
    ({ ask } = market.x402);
  });
  afterEach(() => Object.assign(market.x402, { ask }));

  /** Does something between the quote and the hold. Expects a refusal with nothing held or signed. Answers how to send it again. */
  async function during(
    refused: Refused,
    meanwhile: (agent: Agent) => unknown,
    mode: "live" | "sandbox" = "sandbox",
  ): Promise<() => Promise<Reply>> {
    const agent = await buyer.addAgent({ mode });
    const named = { agent_id: agent.id };
    must(await createSession(service.ctx, MACHINE, { ...named, amount_ceiling: "1000" }));
    const answered = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    Object.assign(market.x402, {
      ask: async () => {
        arrived.resolve();
        await answered.promise;
        return market.first;
      },
    });
    const key = freshKey();
    const pay = () => service.post("/v1/x402/pay", body(named), { as: agent.as, key });
    const sent = market.sent.length;
    const paying = pay();
    await arrived.promise;
    await meanwhile(agent);
    const before = service.allRows(buyer);
    answered.resolve();
    const reply = await paying;
    Object.assign(market.x402, { ask });
    expect([reply.status, reply.code]).toEqual([refused[0], refused[1]]);
    const { purchases, idempotency_keys, ...rest } = before;
    const { purchases: left, idempotency_keys: keys, ...now } = service.allRows(buyer);
    expect(now).toEqual(rest);
    expect([left!.length, keys!.length]).toEqual([purchases!.length - 1, idempotency_keys!.length - 1]);
    expect(market.sent.length).toBe(sent);
    return pay;
  }
  /** Expects that the same key buys, once the cause of the refusal is gone. */
  const buysAt = async (pay: () => Promise<Reply>) => {
    const { status, body: bought } = await pay();
    expect([status, bought.state]).toEqual([200, "released"]);
  };

  test("a key that is revoked", () =>
    during([401, "not_authenticated"], ({ keyId }) => revokeKey(service.ctx, MACHINE, { key_id: keyId })));

  test.each(["paused", "killed"] as const)("an agent that is %s", async (status) => {
    let id = "";
    const setStatus = async (to: "active" | "paused" | "killed") =>
      must(await setAgentStatus(service.ctx, MACHINE, { agent_id: id, status: to }));
    const pay = await during([403, "agent_not_active"], (agent) => {
      id = agent.id;
      return setStatus(status);
    });
    await setStatus("active");
    await buysAt(pay);
  });

  test("a session that is revoked, that expires, or that gets a lower ceiling", async () => {
    const { ctx } = service;
    const live = (id: string) => ctx.reader.agents.liveSession(id, ctx.now())!;
    await during([403, "session_revoked"], ({ id }) =>
      revokeSession(ctx, MACHINE, { session_id: live(id).id }),
    );
    await during([403, "session_expired"], ({ id }) => {
      service.clock.now = live(id).expiresAt;
    });
    await during([403, "session_ceiling_exceeded"], ({ id }) =>
      createSession(ctx, MACHINE, { agent_id: id, amount_ceiling: "99" }),
    );
  });

  test("the kill switch", async () => {
    const turn = async (on: boolean) =>
      must(await setKillSwitch(service.ctx, MACHINE, { organisation_id: buyer.id, on }));
    const pay = await during([403, "kill_switch_active"], () => turn(true));
    await turn(false);
    await buysAt(pay);
  });

  test.each([
    ["a voucher", asksVoucher("100")],
    ["exact", asksExact("100")],
  ])("the passkey threshold, for %s", async (_, first) => {
    market.first = first;
    market.paid = () => delivers({}, RECEIPT);
    const pay = await during([403, "passkey_required"], () => setThreshold(service, buyer, "99"));
    await setThreshold(service, buyer, "100");
    await buysAt(pay);
  });

  test("a policy with a lower maximum", () =>
    during([403, "policy_max_amount_exceeded"], ({ id }) =>
      buyer.addPolicy({ bands: [{ minScore: 0, outcome: "refund" }], maxAmount: "99" }, { agent_id: id }),
    ));

  test("a restore, for live only", async () => {
    const pay = await during([403, "restore_unacknowledged"], () => markRestored(service.ctx), "live");
    await buysAt(() => service.post("/v1/x402/pay", body(), { as: buyer.sandbox.as }));
    must(await acknowledgeRestore(service.ctx));
    await buysAt(pay);
  });
});

test("after all of that the key still buys, once", async () => {
  const sent = market.sent.length;
  const send = () => service.post("/v1/x402/pay", body(), { as: home.sandbox.as, key: "the-key" });
  const reply = await send();
  expect([reply.status, reply.body.state]).toEqual([200, "released"]);
  expect((await send()).text).toBe(reply.text);
  const reused = await service.post("/v1/x402/pay", body({ max_amount: "999" }), {
    as: home.sandbox.as,
    key: "the-key",
  });
  expect(reused.code).toBe("idempotency_key_reused");
  expect(market.sent.length).toBe(sent + 1);
});
