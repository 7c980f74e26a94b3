import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { createRemoteJWKSet, jwtVerify } from "jose";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { createSession } from "../../src/services/admin/sessions.ts";
import { freshKey, type Json, type SendOptions } from "../support/client.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { type Service, startTestServer } from "../support/server.ts";
import { type Answer, type Listener, listen } from "../x402/listener.ts";

/** POST /v1/x402/pay against sellers of this machine that take vouchers (docs/x402, "Vouchers"). */

const ASKED = { amount: "100", asset: "USDC", payee: "acme" };

/** What each path answers to a payment. Without a payment it asks for ASKED, unless the path says otherwise. */
type Shop = {
  readonly asks?: (request: Request) => Answer;
  readonly sells: (request: Request, payment: string) => Answer | Promise<Answer>;
};

let service: Service;
let seller: Listener;
let home: TestOrganisation;
const shops = new Map<string, Shop>();
const asked: Request[] = [];
beforeAll(async () => {
  seller = await listen((request) => {
    asked.push(request);
    const shop = shops.get(new URL(request.url).pathname);
    if (!shop) return new Response("nothing here", { status: 404 });
    const payment = request.headers.get("x-payment");
    return payment === null
      ? (shop.asks?.(request) ?? Response.json(ASKED, { status: 402 }))
      : shop.sells(request, payment);
  });
  service = await startTestServer();
  home = await service.organisation();
});
afterAll(async () => {
  await service?.close();
  await seller?.close();
});

/** A new URL at which this is sold. */
function open(shop: Shop | ((payment: string) => Answer)): string {
  const path = `/${shops.size}`;
  shops.set(path, typeof shop === "function" ? { sells: (_, payment) => shop(payment) } : shop);
  return seller.url + path;
}

const FOUR = [0, 1, 2, 3].map((index) => ({ kind: "json.jsonpath", path: `$.c${index}` }));
const body = (url: string, overrides: object = {}) => ({
  url,
  max_amount: "1000",
  spec: { clauses: FOUR },
  ...overrides,
});
const pay = (url: string, overrides: object = {}, options: SendOptions = {}) =>
  service.post("/v1/x402/pay", body(url, overrides), { as: home.live.as, ...options });

const passing = (count: number): object =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`c${index}`, index]));
const states = (warrantId: string): readonly string[] =>
  service.ctx.reader.trace.of(warrantId).map(({ to, actor }) => `${to} by ${actor.kind}`);
const purchaseOf = (warrantId: string) =>
  service.ctx.reader.purchases
    .list({ organisationId: home.id, mode: "live" }, null, 100)
    .find((purchase) => purchase.warrantId === warrantId)!;

describe("bought with a voucher", () => {
  test("in the asset that the caller names, and in no other", async () => {
    const funds = { organisation_id: home.id, mode: "live", amount: "100", asset: "WBTC" } as const;
    must(await fundBalance(service.ctx, MACHINE, funds));
    const url = open({
      asks: () => Response.json({ ...ASKED, asset: "WBTC" }, { status: 402 }),
      sells: () => Response.json(passing(4)),
    });
    const refused = await pay(url);
    expect([refused.status, refused.code]).toEqual([400, "x402_scheme_unsupported"]);
    expect(refused.body.error.message).toContain("the price is in WBTC, and max_amount in USDC");
    expect(service.balance(home, "live", "WBTC").available).toBe(100n);
    const { body: bought } = await pay(url, { asset: "WBTC", max_amount: "100" });
    expect(bought).toMatchObject({ state: "released", quoted: { amount: "100", asset: "WBTC" } });
    expect(service.balance(home, "live", "WBTC")).toEqual({ available: 0n, held: 0n, paid: 100n });
  });

  test("an answer that passes is paid: the warrant, its trace, the balance, the check and the receipt", async () => {
    const before = service.balance(home);
    const goods = JSON.stringify(passing(4));
    let payment = "";
    const url = open((sent) => {
      payment = sent;
      return new Response(goods, { status: 200 });
    });
    const reply = await pay(url, { headers: { "X-Mine": "1" } });
    expect(reply.status).toBe(200);
    expect(Object.keys(reply.body)).toEqual([
      ...["warrant_id", "state", "quoted", "paid", "released_bps"],
      ...["passed", "reason_codes", "status", "body"],
    ]);
    expect(reply.body).toEqual({
      warrant_id: expect.stringMatching(/^wrt_/),
      state: "released",
      quoted: ASKED,
      paid: true,
      released_bps: 10_000,
      passed: true,
      reason_codes: [],
      status: 200,
      body: goods,
    });
    expect(reply.headers.get("service-body-encoding")).toBeNull();
    expect(reply.headers.get("etag")).toBeNull();

    const id: string = reply.body.warrant_id;
    expect(states(id)).toEqual(["held by agent", "verifying by agent", "released by system"]);
    const after = service.balance(home);
    expect([before.available - after.available, after.paid - before.paid, after.held]).toEqual([
      100n,
      100n,
      before.held,
    ]);
    expect(service.ctx.reader.checks.of(id)).toMatchObject([
      {
        sourceUrl: url,
        httpStatus: 200,
        bytes: goods.length,
        score: 10_000,
        passed: true,
        outcome: "release",
        evidenceHash: createHash("sha256").update(goods).digest("hex"),
      },
    ]);
    expect(purchaseOf(id)).toMatchObject({
      phase: "ended",
      attempt: "answered",
      known: "unpaid",
      nextCheckAt: null,
    });
    const warrant = await service.get(`/v1/warrants/${id}`, { as: home.live.as });
    const ahead = Date.parse(warrant.body.deadline) - Date.parse(warrant.body.opened_at);
    expect(ahead).toBe(600_000);
    expect(warrant.body).toMatchObject({ payee: "acme", amount: "100", spec: { clauses: FOUR } });
    expect((await service.get(`/t/${id}`)).status).toBe(200);

    // The seller can verify the voucher.
    const envelope: Json = JSON.parse(Buffer.from(payment, "base64").toString());
    expect(envelope).toMatchObject({
      x402Version: 1,
      scheme: "warrant",
      network: expect.stringMatching(/^holdfast:ins_/),
    });
    const keys = createRemoteJWKSet(new URL(`${service.url}/.well-known/jwks.json`));
    const { payload } = await jwtVerify(envelope.payload.voucher, keys, { typ: "holdfast-voucher+jwt" });
    expect(payload).toMatchObject({
      ...ASKED,
      mode: "live",
      warrant: id,
      url,
      receipt: expect.stringContaining(`/t/${id}`),
    });
    expect(payload.exp).toBe(Math.floor(Date.parse(warrant.body.deadline) / 1_000));
    expect(
      asked.filter((request) => request.url === url).map(({ headers }) => headers.get("x-mine")),
    ).toEqual(["1", "1"]);
  });

  const BANDS = {
    bands: [
      { minScore: 1, outcome: "release" },
      { minScore: 0.5, outcome: "partial_release", releasedBps: 2_500 },
      { minScore: 0.25, outcome: "escalate" },
      { minScore: 0, outcome: "refund" },
    ],
  };
  test.each([
    [4, { state: "released", paid: true, released_bps: 10_000, passed: true, reason_codes: [] }],
    [
      2,
      {
        state: "partially_released",
        paid: true,
        released_bps: 2_500,
        passed: false,
        reason_codes: ["path_not_found"],
      },
    ],
    [
      1,
      {
        state: "escalated",
        paid: false,
        released_bps: null,
        passed: false,
        reason_codes: ["path_not_found"],
      },
    ],
    [
      0,
      { state: "refunded", paid: false, released_bps: null, passed: false, reason_codes: ["path_not_found"] },
    ],
  ])("the policy decides: of four clauses %d pass", async (count, expected) => {
    const agent = await home.addAgent();
    await home.addPolicy(BANDS, { agent_id: agent.id });
    const reply = await pay(
      open(() => Response.json(passing(count))),
      { agent_id: agent.id },
      { as: agent.as },
    );
    expect(reply.body).toMatchObject({ ...expected, status: 200, body: JSON.stringify(passing(count)) });
    expect(service.ctx.reader.agents.get(agent.id)?.failureCount).toBe(count === 4 ? 0 : 1);
  });

  test("an escalated one is settled by a person, as any other", async () => {
    const reply = await pay(open(() => Response.json({}, { status: 500 })));
    expect(reply.body).toMatchObject({ state: "escalated", paid: false, status: 500, body: "{}" });
    const as = home.people.operator.as;
    const settled = await service.post(`/v1/warrants/${reply.body.warrant_id}/refund`, undefined, { as });
    expect(settled.body.state).toBe("refunded");
  });

  test("where the seller answers 402 again, or redirects, that answer counts as the delivery", async () => {
    const again = await pay(open(() => Response.json(ASKED, { status: 402 })));
    expect(again.body).toMatchObject({ state: "escalated", status: 402 });
    const moved = await pay(open(() => new Response(null, { status: 307, headers: { location: "/0" } })));
    expect(moved.body).toMatchObject({ state: "escalated", status: 307, body: "" });
  });

  test.each([
    ["breaks off", () => "dropped" as const],
    ["answers half", () => new Response("half", { headers: { "content-length": "100" } })],
  ])("no answer returns the hold, and counts as a failure: the seller %s", async (_, sells) => {
    const agent = await home.addAgent();
    must(await createSession(service.ctx, MACHINE, { agent_id: agent.id, amount_ceiling: "1000" }));
    const before = service.balance(home);
    const reply = await pay(open(sells), { agent_id: agent.id }, { as: agent.as });
    expect([reply.status, reply.body]).toEqual([
      200,
      {
        warrant_id: expect.stringMatching(/^wrt_/),
        state: "refunded",
        quoted: ASKED,
        paid: false,
        released_bps: null,
        passed: false,
        reason_codes: ["source_unreachable"],
        status: 0,
        body: "",
      },
    ]);
    expect(states(reply.body.warrant_id)).toEqual(["held by agent", "refunded by system"]);
    expect(service.balance(home)).toEqual(before);
    expect(service.ctx.reader.checks.of(reply.body.warrant_id)).toEqual([]);
    expect(service.ctx.reader.agents.get(agent.id)?.failureCount).toBe(1);
    expect(service.ctx.reader.agents.liveSession(agent.id, Date.now())).toMatchObject({
      amountSpent: 0n,
      warrantCount: 1,
      failureCount: 1,
    });
  });

  test("a seller that goes away before it is paid was never reached", async () => {
    const gone = await listen(() => {
      setImmediate(() => void gone.close());
      return Response.json(ASKED, { status: 402, headers: { connection: "close" } });
    });
    const url = `${gone.url}/`;
    const reply = await pay(url);
    expect(reply.body).toMatchObject({
      state: "refunded",
      paid: false,
      status: 0,
      reason_codes: ["source_unreachable"],
    });
  });
});

describe("challenges", () => {
  test.each([
    ["at the top level", ASKED],
    ["nested", { x402: ASKED, error: "payment required" }],
    ["with leading zeros", { ...ASKED, amount: "000100" }],
  ])("simple ones %s", async (_, challenge) => {
    const url = open({
      asks: () => Response.json(challenge, { status: 402 }),
      sells: () => Response.json(passing(4)),
    });
    expect((await pay(url)).body).toMatchObject({ state: "released", quoted: ASKED });
  });

  test("of ten megabytes, and of more than the cap", async () => {
    const large = (bytes: number) =>
      open({ asks: () => new Response("[".repeat(bytes), { status: 402 }), sells: () => "dropped" });
    for (const tooLong of [256 * 1024 + 1, 10 * 1024 * 1024 + 1]) {
      const url = large(tooLong);
      await service.refuses(home, [400, "x402_challenge_invalid"], () => pay(url));
    }
  });

  test("after a redirect within the origin, the URL that answered is paid", async () => {
    const goods = open(() => Response.json(passing(4)));
    const hop = open({
      asks: () => new Response(null, { status: 302, headers: { location: goods } }),
      sells: () => "dropped",
    });
    const reply = await pay(hop);
    expect(reply.body).toMatchObject({ state: "released" });
    expect(purchaseOf(reply.body.warrant_id).url).toBe(hop);
  });

  test("a POST stays a POST, without a body", async () => {
    const methods: string[] = [];
    const url = open({
      asks: ({ method }) => {
        methods.push(method);
        return Response.json(ASKED, { status: 402 });
      },
      sells: ({ method }) => {
        methods.push(method);
        return Response.json(passing(4));
      },
    });
    expect((await pay(url, { method: "POST" })).body.state).toBe("released");
    expect(methods).toEqual(["POST", "POST"]);
  });

  test("to another origin, or nowhere: nothing is held", async () => {
    const away = open({
      asks: () => new Response(null, { status: 302, headers: { location: "http://localhost:1/" } }),
      sells: () => "dropped",
    });
    for (const url of [away, "http://127.0.0.1:1/", "http://10.0.0.1/"])
      await service.refuses(home, [400, "upstream_unreachable"], () => pay(url));
  });
});

describe("a URL that costs nothing", () => {
  test.each([
    ["text", 200, "for free"],
    ["an error", 404, "nothing here"],
    ["no body", 204, ""],
  ])("is passed through, and nothing is held: %s", async (_, status, text) => {
    const url = open({
      asks: () => new Response(status === 204 ? null : text, { status }),
      sells: () => "dropped",
    });
    const before = service.balance(home);
    const send = { as: home.live.as, key: freshKey() };
    const reply = await pay(url, {}, send);
    expect([reply.status, reply.body]).toEqual([
      200,
      {
        warrant_id: null,
        state: null,
        quoted: null,
        paid: false,
        released_bps: null,
        passed: false,
        reason_codes: [],
        status,
        body: text,
      },
    ]);
    expect(service.balance(home)).toEqual(before);
    const count = asked.length;
    const again = await pay(url, {}, send);
    expect([again.text, again.headers.get("idempotent-replayed"), asked.length]).toEqual([
      reply.text,
      "true",
      count,
    ]);
  });
});

describe("replays", () => {
  const BINARY = Uint8Array.from({ length: 70_000 }, (_, index) => (index * 7_919) % 256);
  test.each([
    ["text", new Response('gr\u00fc\u00df "dich" \n \u2028 \ufeff \u{1f600}'), null],
    ["a byte order mark", new Response(Uint8Array.of(0xef, 0xbb, 0xbf, 0x61)), null],
    ["bytes", new Response(BINARY), "base64"],
    ["nothing", new Response(null, { status: 204 }), null],
  ])("are the same to the byte, once paid: %s", async (_, response, encoding) => {
    const bytes = Buffer.from(await response.clone().arrayBuffer());
    const url = open(() => response.clone() as Response);
    const options = { as: home.live.as, key: freshKey() };
    const first = await pay(url, {}, options);
    expect([first.status, first.headers.get("service-body-encoding")]).toEqual([200, encoding]);
    expect(Buffer.from(first.body.body, (encoding ?? "utf8") as BufferEncoding)).toEqual(bytes);
    const allRows = service.allRows(home);
    const count = asked.length;
    for (const again of [await pay(url, {}, options), await pay(url, {}, options)]) {
      expect([again.status, again.text === first.text]).toEqual([200, true]);
      expect(again.headers.get("service-body-encoding")).toBe(encoding);
      expect(again.headers.get("idempotent-replayed")).toBe("true");
    }
    expect([service.allRows(home), asked.length]).toEqual([allRows, count]);
  });

  test("a body that was bought twice is stored once", async () => {
    const kept = () => service.everything().contents!.length;
    const goods = `the same ${Date.now()}`;
    const before = kept();
    for (let count = 0; count < 3; count++) await pay(open(() => new Response(goods)));
    expect(kept()).toBe(before + 1);
  });

  test("a key in flight is refused for every request; then it replays", async () => {
    const arrived = Promise.withResolvers<void>();
    const delivered = Promise.withResolvers<Answer>();
    const url = open({
      sells: () => {
        arrived.resolve();
        return delivered.promise;
      },
    });
    const options = { as: home.live.as, key: freshKey() };
    const first = pay(url, {}, options);
    await arrived.promise;
    const allRows = service.allRows(home);
    expect((await pay(url, {}, options)).code).toBe("idempotency_in_flight");
    expect((await pay(url, { max_amount: "2000" }, options)).code).toBe("idempotency_key_reused");
    expect(service.allRows(home)).toEqual(allRows);
    delivered.resolve(Response.json(passing(4)));
    const reply = await first;
    expect(reply.body.state).toBe("released");
    expect((await pay(url, {}, options)).text).toBe(reply.text);
  });
});

test("fifty at once against a session with room for ten: ten are bought, forty refused, and nothing is left of them", async () => {
  const agent = await home.addAgent();
  must(await createSession(service.ctx, MACHINE, { agent_id: agent.id, amount_ceiling: "1000" }));
  const before = service.balance(home);
  const purchases = service.allRows(home).purchases!.length;
  let sold = 0;
  const url = open(() => {
    sold += 1;
    return Response.json(passing(4));
  });
  const replies = await Promise.all(
    Array.from({ length: 50 }, () => pay(url, { agent_id: agent.id }, { as: agent.as })),
  );
  expect(replies.filter(({ code }) => code === "session_ceiling_exceeded")).toHaveLength(40);
  expect([replies.filter(({ status }) => status === 200).length, sold]).toEqual([10, 10]);
  const after = service.balance(home);
  expect([before.available - after.available, after.held]).toEqual([1_000n, before.held]);
  expect(service.allRows(home).purchases!.length).toBe(purchases + 10);
  expect(service.ctx.x402.underWay.size).toBe(0);
});
