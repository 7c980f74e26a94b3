import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { UNSEEN_ANSWER } from "../../src/core/capsule.ts";
import { reachedEvidence } from "../../src/core/clauses/evidence.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createSession, type SessionInput } from "../../src/services/admin/sessions.ts";
import type { FetchEvidence } from "../../src/services/context.ts";
import type { Json, Reply } from "../support/client.ts";
import { asksExact, asksVoucher, type Market, openMarket, PAY_TO, SELLER_URL } from "../support/market.ts";
import { must, type TestAgent, type TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** What a session may limit besides its ceiling: lists, and sums of time (docs/sessions, "Windows and lists" and "Entries of the lists"). */

let market: Market;
let service: ShellService;
let home: TestOrganisation;
let agent: TestAgent;
/** Whether the last fetch may follow a redirect to a URL. */
let mayFollow: Parameters<FetchEvidence>[2];
let fetched: string[];
beforeEach(async () => {
  market = openMarket();
  fetched = [];
  service = startTestShell({
    x402: market.x402,
    fetchEvidence: async (url, _, may) => {
      fetched.push(url);
      mayFollow = may;
      return {
        evidence: reachedEvidence({ status: 200, body: Buffer.from("{}") }),
        status: 200,
        bytes: 2,
        durationMs: 1,
        answer: UNSEEN_ANSWER,
      };
    },
  });
  home = await service.organisation();
  agent = await home.addAgent({ failure_budget: 100 });
});
afterEach(() => service.close());

const limit = (input: Partial<SessionInput>) =>
  createSession(service.ctx, MACHINE, { agent_id: agent.id, amount_ceiling: "1000", ...input }).then(must);
const bodyOf = (overrides: object = {}) => service.body({ agent_id: agent.id, ...overrides });
const open = (overrides: object = {}, as = agent.as): Promise<Reply> =>
  service.post("/v1/warrants", bodyOf(overrides), { as });
const refuses = (field: string, send: () => Promise<Reply>): Promise<Reply> =>
  service.refuses(home, [403, "session_limit_exceeded", `${field}: `], send);
const session = async (): Promise<Json> => {
  const { body } = await service.get("/v1/console/agents", { as: home.people.viewer.as });
  return body.data.find(({ id }: Json) => id === agent.id).session;
};

test("the read-back shows the limits, null where unset", async () => {
  const unset = {
    per_warrant_max: null,
    hourly_max: null,
    daily_max: null,
    payees: null,
    source_origins: null,
  };
  await limit({});
  expect(await session()).toMatchObject(unset);
  const set = {
    per_warrant_max: "0100",
    hourly_max: "200",
    daily_max: "9223372036854775807",
    payees: ["acme", "shop*"],
    source_origins: ["HTTPS://Good.Example:443/", "https://other.example:*"],
  };
  await limit(set);
  expect(await session()).toMatchObject({
    ...set,
    per_warrant_max: "100",
    source_origins: ["https://good.example", "https://other.example:*"],
  });
});

describe("an open that a limit forbids holds nothing and uses up no key", () => {
  test("payees: exactly, or by how they begin", async () => {
    await limit({ payees: ["acme", "shop-*"] });
    for (const payee of ["acme2", "Acme", "shop", "evil"]) await refuses("payees", () => open({ payee }));
    for (const payee of ["acme", "shop-", "shop-17"]) expect((await open({ payee })).status).toBe(201);
  });

  test("per_warrant_max: above it alone", async () => {
    await limit({ per_warrant_max: "100" });
    await refuses("per_warrant_max", () => open({ amount: "101" }));
    for (let count = 0; count < 3; count++) expect((await open({ amount: "100" })).status).toBe(201);
  });

  test("hourly_max and daily_max: by keys and by people alike, and a person's refund makes no room", async () => {
    await limit({ hourly_max: "150", daily_max: "250" });
    const { body } = await open();
    await service.post(`/v1/warrants/${body.id}/refund`, undefined, { as: home.people.operator.as });
    expect(await session()).toMatchObject({ amount_spent: "0", warrant_count: 1 });
    for (const as of [agent.as, home.people.operator.as]) {
      const reply = await refuses("hourly_max", () => open({ amount: "51" }, as));
      const at = new Date(service.clock.now + 3_600_000).toISOString();
      expect(reply.body.error).toMatchObject({
        type: "forbidden",
        message: expect.stringMatching(
          new RegExp(
            `holds at most 150 in an hour, 100 is used, and 51 was requested. It would pass at ${at}.$`,
          ),
        ),
      });
    }
    service.clock.now += 3_600_000;
    const deadline = service.timeIn(3_600_000);
    expect((await open({ deadline, amount: "150" })).status).toBe(201);
    await refuses("hourly_max", () => open({ deadline, amount: "1" }));
    service.clock.now += 3_600_000;
    await refuses("daily_max", () => open({ deadline: service.timeIn(3_600_000), amount: "1" }));
  });

  test("after the ceiling, in their order", async () => {
    await limit({
      amount_ceiling: "50",
      payees: ["a"],
      per_warrant_max: "10",
      hourly_max: "5",
      daily_max: "4",
    });
    await service.refuses(home, [403, "session_ceiling_exceeded"], () => open({ amount: "51", payee: "b" }));
    await refuses("payees", () => open({ amount: "11", payee: "b" }));
    await refuses("per_warrant_max", () => open({ amount: "11", payee: "a" }));
    await refuses("hourly_max", () => open({ amount: "6", payee: "a" }));
    await refuses("daily_max", () => open({ amount: "5", payee: "a" }));
    expect((await open({ amount: "4", payee: "a" })).status).toBe(201);
  });

  test("what does not name the agent is not limited", async () => {
    await limit({ payees: ["nobody"], per_warrant_max: "0" });
    expect((await service.post("/v1/warrants", service.body(), { as: agent.as })).status).toBe(201);
  });

  test("opens and purchases at once: exactly those that fit", async () => {
    await limit({ hourly_max: "300" });
    const buy = () =>
      service.post(
        "/v1/x402/pay",
        {
          url: SELLER_URL,
          max_amount: "100",
          spec: { clauses: [{ kind: "http.status", equals: 200 }] },
          agent_id: agent.id,
        },
        { as: agent.as },
      );
    const replies = await Promise.all(Array.from({ length: 16 }, (_, at) => (at % 2 ? open() : buy())));
    const codes = replies.map(({ status, code }) => (status < 300 ? "held" : code));
    expect(codes.filter((code) => code === "held")).toHaveLength(3);
    expect(codes.filter((code) => code === "session_limit_exceeded")).toHaveLength(13);
    expect(await session()).toMatchObject({ warrant_count: 3 });
  });
});

describe("source_origins", () => {
  const GOOD = "https://good.example/file?a#b";
  const verify = ({ body: { id } }: Reply, source_url: string, as = agent.as) =>
    service.post(`/v1/warrants/${id}/verify`, { source_url }, { as });

  test("are asked at verify, of the session that it was opened under, whoever verifies", async () => {
    await limit({ source_origins: ["https://good.example"] });
    const opened = await open();
    await limit({ source_origins: ["https://evil.example"] });
    for (const as of [agent.as, home.people.operator.as])
      for (const source of [
        "https://evil.example/",
        "https://good.example.evil.example/",
        "http://good.example/",
      ])
        await refuses("source_origins", () => verify(opened, source, as));
    expect(fetched).toEqual([]);
    const { body } = await verify(opened, GOOD);
    expect([body.state, fetched]).toEqual(["released", [GOOD]]);
  });

  test("hold for redirects too; without a list a check follows them anywhere", async () => {
    const asked = ["https://good.example:8443/a", "https://good.example/b", "https://evil.example/"];
    const answers = () => asked.map((url) => mayFollow?.(new URL(url)));
    await limit({ source_origins: ["https://good.example"] });
    await verify(await open(), GOOD);
    expect(answers()).toEqual([false, true, false]);
    await limit({});
    await verify(await open(), GOOD);
    expect(answers()).toEqual([true, true, true]);
    await verify(await service.post("/v1/warrants", service.body(), { as: agent.as }), GOOD);
    expect(answers()).toEqual([true, true, true]);
  });
});

describe("a purchase", () => {
  const SPEC = { clauses: [{ kind: "http.status", equals: 200 }] };
  const pay = () =>
    service.post(
      "/v1/x402/pay",
      { url: SELLER_URL, max_amount: "1000", spec: SPEC, agent_id: home.sandbox.id },
      { as: home.sandbox.as },
    );
  const limitBuyer = (input: Partial<SessionInput>) =>
    createSession(service.ctx, MACHINE, {
      agent_id: home.sandbox.id,
      amount_ceiling: "1000",
      ...input,
    }).then(must);

  test("from an origin that is not listed is refused before the seller is asked", async () => {
    await limitBuyer({ source_origins: ["http://seller.example:*", "http://x.example"] });
    expect((await pay()).body).toMatchObject({ state: "released", passed: true });
    market.asked.length = 0;
    await limitBuyer({ source_origins: ["http://seller.example:8080"] });
    await refuses("source_origins", pay);
    expect(market.asked).toEqual([]);
  });

  test("for a payee that is not listed is refused once it is quoted: nothing is held, signed or sent", async () => {
    await limitBuyer({ payees: [PAY_TO.toLowerCase()] });
    market.first = asksVoucher("100", "USDC", "evil");
    await refuses("payees", pay);
    market.first = asksExact("100", 2, { payTo: `${PAY_TO.slice(0, -1)}2` });
    await refuses("payees", pay);
    expect([market.asked.length, market.sent]).toEqual([2, []]);
    market.first = asksExact("100");
    expect((await pay()).status).toBe(200);
    expect(market.sent).toHaveLength(1);
  });

  test("is charged to the windows as an open is", async () => {
    await limitBuyer({ per_warrant_max: "100", hourly_max: "150" });
    market.first = asksVoucher("101");
    await refuses("per_warrant_max", pay);
    market.first = asksVoucher("100");
    expect((await pay()).status).toBe(200);
    const { body } = await refuses("hourly_max", pay);
    expect(body.error.message).toEndWith(
      `100 is used, and 100 was requested. It would pass at ${new Date(service.clock.now + 3_600_000).toISOString()}.`,
    );
    market.first = asksVoucher("50");
    expect((await pay()).status).toBe(200);
  });
});
