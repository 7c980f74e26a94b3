import { afterAll, beforeAll, expect, test } from "bun:test";
import { setAgentStatus } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { acknowledgeRestore } from "../../src/services/admin/backup.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { createPolicy } from "../../src/services/admin/policies.ts";
import { createSession, revokeSession } from "../../src/services/admin/sessions.ts";
import { setKillSwitch } from "../../src/services/admin/switches.ts";
import { NOBODY, type SendOptions } from "../support/client.ts";
import { asks, asksExact, asksVoucher, type Market, openMarket, SELLER_URL } from "../support/market.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { approve, enrol, setThreshold, type TestPasskey } from "../support/passkeys.ts";
import { markRestored } from "../support/restored.ts";
import { type Refused, type ShellService, startTestShell } from "../support/server.ts";

/** A request that is wrong in every way, corrected one step at a time (docs/idempotency, "The order of checks"). */

let service: ShellService;
let market: Market;
beforeAll(() => {
  market = openMarket();
  service = startTestShell({ x402: market.x402, rateLimits: { read: 1_000, write: 40, bench: 1_000 } });
});
afterAll(() => service?.close());

/** A step: the refusal of a request, and the request with that problem corrected. Corrections stay for the steps after it. */
type Request = { readonly path: string; readonly body: unknown; readonly options: SendOptions };
type Step = { readonly refused: Refused; readonly correct: (request: Request) => Request | Promise<Request> };

/** Walks the steps: each must be refused as it says, and change nothing. Answers the request after the last correction. */
async function walk(
  organisation: TestOrganisation,
  request: Request,
  steps: readonly Step[],
): Promise<Request> {
  let current = request;
  for (const { refused, correct } of steps) {
    await service.refuses(organisation, refused, () =>
      service.post(current.path, current.body, current.options),
    );
    current = await correct(current);
  }
  return current;
}

const withBody = (request: Request, changed: object): Request => ({
  ...request,
  body: { ...(request.body as object), ...changed },
});
const nextWindow = (): void => {
  service.clock.now += 60_000;
};

/** Uses up the caller's budget of the window. */
async function exhaust(options: SendOptions): Promise<void> {
  for (let status = 0; status !== 429; ) ({ status } = await service.post("/v1/warrants", "{", options));
}

test("an open that is wrong in every way is refused in the fixed order, until it opens", async () => {
  const home = await service.organisation(0n);
  const other = await service.organisation();
  const agent = await home.addAgent({ must_be_named: true });
  const as = agent.as;
  const viewer = home.people.viewer.as;
  must(
    await fundBalance(service.ctx, MACHINE, {
      organisation_id: home.id,
      mode: "live",
      amount: "10",
      asset: "EUR",
    }),
  );
  const taken = await service.post(
    "/v1/warrants",
    service.body({ asset: "EUR", amount: "1", agent_id: agent.id }),
    {
      as,
      key: "taken",
    },
  );
  expect(taken.status).toBe(201);
  const oldPolicy = await home.addPolicy({ bands: [{ minScore: 0, outcome: "refund" }] }, { name: "strict" });
  const newPolicy = must(
    await createPolicy(service.ctx, MACHINE, {
      organisation_id: home.id,
      name: "strict",
      rules: { bands: [{ minScore: 0, outcome: "refund" }], maxAmount: "99" },
    }),
  );
  must(await setAgentStatus(service.ctx, MACHINE, { agent_id: agent.id, status: "paused" }));
  await markRestored(service.ctx);
  must(await setKillSwitch(service.ctx, MACHINE, { organisation_id: home.id, on: true }));
  await setThreshold(service, home, "98");
  await exhaust({ as: { Authorization: "Bearer nobody", ...viewer } });
  await exhaust({ as: viewer });

  const start: Request = {
    path: "/v1/warrant",
    body: '{"amount": 5, "amount": 6}',
    options: { as: { Authorization: "Bearer nobody", ...viewer }, key: null },
  };
  const last = await walk(home, start, [
    { refused: [404, "route_not_found"], correct: (request) => ({ ...request, path: "/v1/warrants" }) },
    {
      refused: [429, "rate_limit_exceeded"],
      async correct(request) {
        nextWindow();
        return request;
      },
    },
    {
      refused: [401, "not_authenticated"],
      async correct(request) {
        await exhaust({ as: viewer });
        return { ...request, options: { ...request.options, as: viewer } };
      },
    },
    {
      refused: [429, "rate_limit_exceeded"],
      correct(request) {
        nextWindow();
        return request;
      },
    },
    {
      refused: [403, "insufficient_role"],
      correct: (request) => ({ ...request, options: { ...request.options, as } }),
    },
    {
      refused: [400, "idempotency_key_required"],
      correct: (request) => ({ ...request, options: { ...request.options, key: "taken" } }),
    },
    {
      refused: [400, "validation_failed", "body: has the same key twice"],
      correct: (request) => ({
        ...request,
        body: service.body({
          amount: 5,
          deadline: service.timeIn(-1),
          agent_id: other.live.id,
          policy_id: "pol_none",
          verifier_id: "vrf_none",
          spec: { clauses: [{ kind: "json.schema", schema: "none" }] },
        }),
      }),
    },
    {
      refused: [400, "validation_failed", "amount"],
      correct: (request) => withBody(request, { amount: "100" }),
    },
    {
      refused: [400, "deadline_in_past"],
      correct: (request) => withBody(request, { deadline: service.timeIn(3_600_000) }),
    },
    {
      refused: [400, "validation_failed", "spec.clauses.0.schema"],
      correct: (request) => withBody(request, { spec: { clauses: [{ kind: "http.status", equals: 200 }] } }),
    },
    {
      refused: [409, "idempotency_key_reused"],
      correct: (request) => ({ ...request, options: { ...request.options, key: "fresh" } }),
    },
    {
      refused: [404, "agent_not_found"],
      correct: (request) => withBody(request, { agent_id: home.live.id }),
    },
    {
      refused: [404, "policy_not_found"],
      correct: (request) => withBody(request, { policy_id: oldPolicy.id }),
    },
    {
      refused: [404, "verifier_not_found"],
      correct: (request) => withBody(request, { verifier_id: undefined }),
    },
    {
      refused: [403, "restore_unacknowledged"],
      async correct(request) {
        must(await acknowledgeRestore(service.ctx));
        return request;
      },
    },
    {
      refused: [403, "kill_switch_active"],
      async correct(request) {
        must(await setKillSwitch(service.ctx, MACHINE, { organisation_id: home.id, on: false }));
        return request;
      },
    },
    {
      refused: [403, "agent_key_mismatch"],
      correct: (request) => withBody(request, { agent_id: undefined }),
    },
    { refused: [403, "agent_id_required"], correct: (request) => withBody(request, { agent_id: agent.id }) },
    {
      refused: [403, "agent_not_active"],
      async correct(request) {
        must(await setAgentStatus(service.ctx, MACHINE, { agent_id: agent.id, status: "active" }));
        must(await createSession(service.ctx, MACHINE, { agent_id: agent.id, amount_ceiling: "99" }));
        return request;
      },
    },
    {
      refused: [403, "session_ceiling_exceeded"],
      async correct(request) {
        must(await createSession(service.ctx, MACHINE, { agent_id: agent.id, amount_ceiling: "100" }));
        return request;
      },
    },
    {
      refused: [403, "policy_not_allowed"],
      correct: (request) => withBody(request, { policy_id: newPolicy.id }),
    },
    {
      refused: [403, "policy_max_amount_exceeded"],
      correct: (request) => withBody(request, { amount: "99" }),
    },
    {
      refused: [403, "passkey_unavailable"],
      async correct(request) {
        await enrol(service, home.people.owner);
        return request;
      },
    },
    {
      refused: [402, "insufficient_funds"],
      async correct(request) {
        must(
          await fundBalance(service.ctx, MACHINE, { organisation_id: home.id, mode: "live", amount: "99" }),
        );
        return request;
      },
    },
  ]);
  const opened = await service.post(last.path, last.body, last.options);
  expect([opened.status, opened.body.policy_id]).toEqual([201, newPolicy.id]);
  expect(service.balance(home)).toEqual({ available: 0n, held: 99n, paid: 0n });
});

test("a verify that is wrong in every way is refused in the fixed order, until it is decided", async () => {
  const home = await service.organisation();
  const other = await service.organisation();
  const foreign = await service.opened(other);
  const settled = await service.opened(home, {}, { as: home.people.operator.as });
  await service.post(`/v1/warrants/${settled.id}/refund`, undefined, { as: home.people.operator.as });
  const owner = await home.addAgent();
  const owned = await service.opened(home, { agent_id: owner.id }, { as: owner.as, key: "taken" });
  const mine = await service.opened(home);
  const body = { source_url: "http://source.example/" };
  nextWindow();

  const last = await walk(
    home,
    {
      path: `/v1/warrants/${foreign.id}/verify`,
      body: "[]",
      options: { as: NOBODY, key: null, headers: { "If-Match": '"9"' } },
    },
    [
      {
        refused: [401, "not_authenticated"],
        correct: (request) => ({ ...request, options: { ...request.options, as: home.people.viewer.as } }),
      },
      {
        refused: [403, "insufficient_role"],
        correct: (request) => ({ ...request, options: { ...request.options, as: home.live.as } }),
      },
      {
        refused: [400, "idempotency_key_required"],
        correct: (request) => ({ ...request, options: { ...request.options, key: "taken" } }),
      },
      {
        refused: [400, "validation_failed", "body"],
        correct: (request) => ({ ...request, body: { source_url: "ftp://source.example/" } }),
      },
      { refused: [400, "validation_failed", "source_url"], correct: (request) => ({ ...request, body }) },
      {
        refused: [409, "idempotency_key_reused"],
        correct: (request) => ({ ...request, options: { ...request.options, key: "fresh" } }),
      },
      {
        refused: [404, "warrant_not_found"],
        correct: (request) => ({ ...request, path: `/v1/warrants/${settled.id}/verify` }),
      },
      {
        refused: [409, "version_conflict"],
        correct: (request) => ({
          ...request,
          options: { ...request.options, headers: { "If-Match": '"2"' } },
        }),
      },
      {
        refused: [409, "illegal_transition"],
        correct: (request) => ({
          ...request,
          path: `/v1/warrants/${owned.id}/verify`,
          options: { ...request.options, headers: { "If-Match": '"1"' } },
        }),
      },
      {
        refused: [403, "agent_key_mismatch"],
        correct: (request) => ({ ...request, path: `/v1/warrants/${mine.id}/verify` }),
      },
    ],
  );
  const verified = await service.post(last.path, last.body, last.options);
  expect([verified.status, verified.body.state]).toEqual([200, "released"]);
});

test("a settlement that is wrong in every way is refused in the fixed order, until it moves", async () => {
  const home = await service.organisation();
  const other = await service.organisation();
  const foreign = await service.opened(other);
  const operator = home.people.operator.as;
  const settled = await service.opened(home);
  await service.post(`/v1/warrants/${settled.id}/refund`, undefined, { as: operator, key: "taken" });
  const small = await service.opened(home, { amount: "1" });
  let passkey: TestPasskey | undefined;
  await setThreshold(service, home, "0");
  nextWindow();

  const last = await walk(
    home,
    {
      path: `/v1/warrants/${foreign.id}/partial`,
      body: { released_bps: 10_000 },
      options: { as: home.live.as, key: null, headers: { "If-Match": '"9"' } },
    },
    [
      {
        refused: [403, "user_session_required"],
        correct: (request) => ({ ...request, options: { ...request.options, as: home.people.viewer.as } }),
      },
      {
        refused: [403, "insufficient_role"],
        correct: (request) => ({ ...request, options: { ...request.options, as: operator } }),
      },
      {
        refused: [400, "idempotency_key_required"],
        correct: (request) => ({ ...request, options: { ...request.options, key: "taken" } }),
      },
      {
        refused: [400, "validation_failed", "released_bps"],
        correct: (request) => ({ ...request, body: { released_bps: 9_999 } }),
      },
      {
        refused: [409, "idempotency_key_reused"],
        correct: (request) => ({ ...request, options: { ...request.options, key: "fresh" } }),
      },
      {
        refused: [404, "warrant_not_found"],
        correct: (request) => ({ ...request, path: `/v1/warrants/${settled.id}/partial` }),
      },
      {
        refused: [409, "version_conflict"],
        correct: (request) => ({ ...request, options: { ...request.options, headers: {} } }),
      },
      {
        refused: [409, "illegal_transition"],
        correct: (request) => ({ ...request, path: `/v1/warrants/${small.id}/partial` }),
      },
      {
        refused: [400, "validation_failed", "released_bps: 9999 basis points of 1 come to nothing"],
        correct: (request) => ({ ...request, path: `/v1/warrants/${small.id}/release`, body: undefined }),
      },
      {
        refused: [403, "passkey_unavailable"],
        async correct(request) {
          passkey = await enrol(service, home.people.operator);
          return request;
        },
      },
      {
        refused: [403, "passkey_required"],
        async correct(request) {
          const decision = { warrant_id: small.id, version: 1, decision: "release" };
          const token = await approve(service, home.people.operator, passkey!, decision);
          return { ...request, options: { ...request.options, headers: { "Service-Passkey": token } } };
        },
      },
    ],
  );
  const released = await service.post(last.path, last.body, last.options);
  expect([released.status, released.body.state]).toEqual([200, "released"]);
});

test("a purchase that is wrong in every way is refused in the fixed order, until something is bought", async () => {
  const home = await service.organisation(0n);
  const { ctx } = service;
  const scope = { organisation_id: home.id, mode: "live" } as const;
  const agent = await home.addAgent({ must_be_named: true });
  const named = { agent_id: agent.id };
  must(await fundBalance(ctx, MACHINE, { ...scope, amount: "10", asset: "EUR" }));
  const taken = service.body({ asset: "EUR", amount: "1", ...named });
  expect((await service.post("/v1/warrants", taken, { as: agent.as, key: "taken" })).status).toBe(201);
  await home.addPolicy({ bands: [{ minScore: 0, outcome: "release" }], maxAmount: "99" }, named);
  const setStatus = async (status: "active" | "paused" | "killed") =>
    must(await setAgentStatus(ctx, MACHINE, { ...named, status }));
  await setStatus("killed");
  const session = async (amount_ceiling: string, rest: { expires_at?: string } = {}) =>
    must(await createSession(ctx, MACHINE, { ...named, amount_ceiling, ...rest }));
  const onBase = (amount: string) =>
    asksExact(amount, 2, {
      network: "eip155:8453",
      asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
      extra: { name: "USD Coin", version: "2" },
    });
  await markRestored(ctx);
  must(await setKillSwitch(ctx, MACHINE, { organisation_id: home.id, on: true }));
  await setThreshold(service, home, "98");
  market.first = { problem: "it could not be reached" };
  market.balance = 50n;
  market.blockTime = ctx.now();
  nextWindow();

  const start: Request = {
    path: "/v1/x402/pay",
    body: "[]",
    options: { as: NOBODY, key: null },
  };
  const asked = (first: Market["first"]) => (request: Request) => {
    market.first = first;
    return request;
  };
  const last = await walk(home, start, [
    {
      refused: [401, "not_authenticated"],
      correct: (request) => ({ ...request, options: { as: home.people.viewer.as, key: null } }),
    },
    {
      refused: [403, "insufficient_role"],
      correct: (request) => ({ ...request, options: { as: agent.as, key: null } }),
    },
    {
      refused: [400, "idempotency_key_required"],
      correct: (request) => ({ ...request, options: { as: agent.as, key: "taken" } }),
    },
    {
      refused: [400, "validation_failed", "body"],
      correct: (request) => ({
        ...request,
        body: {
          url: "ftp://seller.example/",
          headers: { Host: "x" },
          max_amount: "9223372036854775808",
          spec: { clauses: [{ kind: "json.schema", schema: "none" }] },
          agent_id: home.sandbox.id,
        },
      }),
    },
    {
      refused: [400, "validation_failed", "url"],
      correct: (request) => withBody(request, { url: SELLER_URL }),
    },
    {
      refused: [400, "validation_failed", "headers.Host"],
      correct: (request) => withBody(request, { headers: {} }),
    },
    {
      refused: [400, "validation_failed", "max_amount"],
      correct: (request) => withBody(request, { max_amount: "0" }),
    },
    {
      refused: [400, "validation_failed", "spec.clauses.0.schema"],
      correct: (request) => withBody(request, { spec: { clauses: [{ kind: "http.status", equals: 200 }] } }),
    },
    {
      refused: [409, "idempotency_key_reused"],
      correct: (request) => ({ ...request, options: { as: agent.as, key: "fresh" } }),
    },
    {
      refused: [404, "agent_not_found"],
      correct: (request) => withBody(request, { agent_id: home.live.id }),
    },
    {
      refused: [403, "restore_unacknowledged"],
      async correct(request) {
        must(await acknowledgeRestore(ctx));
        return request;
      },
    },
    {
      refused: [403, "kill_switch_active"],
      async correct(request) {
        must(await setKillSwitch(ctx, MACHINE, { organisation_id: home.id, on: false }));
        return request;
      },
    },
    {
      refused: [403, "agent_key_mismatch"],
      correct: (request) => withBody(request, { agent_id: undefined }),
    },
    { refused: [403, "agent_id_required"], correct: (request) => withBody(request, named) },
    {
      refused: [403, "agent_not_active", `The agent ${agent.id} is killed`],
      async correct(request) {
        await setStatus("paused");
        return request;
      },
    },
    {
      refused: [403, "agent_not_active", `The agent ${agent.id} is paused`],
      async correct(request) {
        await setStatus("active");
        const { id } = await session("1");
        must(await revokeSession(ctx, MACHINE, { session_id: id }));
        return request;
      },
    },
    {
      refused: [403, "session_revoked"],
      async correct(request) {
        await session("1", { expires_at: service.timeIn(1_000) });
        nextWindow();
        return request;
      },
    },
    {
      refused: [403, "session_expired"],
      async correct(request) {
        await session("1");
        return request;
      },
    },
    { refused: [400, "upstream_unreachable"], correct: asked(asks("<html>")) },
    { refused: [400, "x402_challenge_invalid"], correct: asked(asksExact("100", 2, { scheme: "upto" })) },
    { refused: [400, "x402_scheme_unsupported"], correct: asked(onBase("100")) },
    {
      refused: [403, "x402_quote_above_max"],
      correct: (request) => withBody(request, { max_amount: "100" }),
    },
    {
      refused: [403, "session_ceiling_exceeded"],
      async correct(request) {
        await session("1000");
        return request;
      },
    },
    { refused: [403, "policy_max_amount_exceeded"], correct: asked(onBase("99")) },
    {
      refused: [403, "passkey_required"],
      async correct(request) {
        await setThreshold(service, home, "99");
        return request;
      },
    },
    {
      refused: [402, "insufficient_funds", "0 USDC is available"],
      async correct(request) {
        must(await fundBalance(ctx, MACHINE, { ...scope, amount: "99" }));
        return request;
      },
    },
    { refused: [402, "insufficient_funds", "The wallet"], correct: asked(asksVoucher("99")) },
  ]);
  const bought = await service.post(last.path, last.body, last.options);
  expect([bought.status, bought.body.state]).toEqual([200, "released"]);
  expect(market.sent).toHaveLength(1);
});
