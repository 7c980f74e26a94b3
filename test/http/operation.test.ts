import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { sha256 } from "../../src/core/canonical.ts";
import type { Answered, Operation } from "../../src/http/operation.ts";
import { createShell, type HttpOptions } from "../../src/http/shell.ts";
import { createMetrics } from "../../src/platform/metrics.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { ledgerFigures } from "../../src/services/figures.ts";
import { createClient } from "../support/client.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { makeOrganisation, type TestOrganisation } from "../support/organisations.ts";

const TOKEN = "a-token-of-the-operator's-prometheus";
const URL = "http://localhost:8080";
const DOCS_URL = `${URL}/docs`;
const PLENTY = { read: 1_000_000, write: 1_000_000, bench: 1_000_000 };
const NO_FIGURES = {
  ...{ jobs: [], places: [], evaluators: [], audit: null, freeBytes: null, newestBackup: null, ready: true },
  connectionsClosed: 0,
  anchorLateMs: null,
  witnesses: [],
  deposits: [],
  treasuries: [],
  ...{ database: null, replicas: [] },
  clockDisagrees: false,
};

let ctx: TestContext;
let answered: Answered[];
beforeEach(() => {
  ctx = createTestContext();
  answered = [];
});
afterEach(() => ctx.close());

function shellWith(options: Partial<HttpOptions> = {}) {
  const shell = createShell(ctx, {
    ...{ docsUrl: DOCS_URL, rateLimits: PLENTY, trustedProxies: [] },
    onFault: (error) => console.error(error),
    onAnswered: (answer) => answered.push(answer),
    ...options,
  });
  const send = (request: Request) => shell(request, () => "192.0.2.1");
  return { ask: send, ...createClient(send, URL, DOCS_URL) };
}

const operation = (metricsTokenHash: string | null, ready = true): Operation => ({
  readiness: async () => ({
    ...{ object: "readiness", ready },
    checks: [{ name: "disk", ok: ready, message: ready ? null : "The disk has less than 100 MiB left." }],
  }),
  metrics: () => createMetrics().text(async () => ({ ...(await ledgerFigures(ctx)), ...NO_FIGURES })),
  metricsTokenHash,
});

describe("/readyz", () => {
  test("is 200 where the service is ready, without a credential", async () => {
    const reply = await shellWith({ operation: operation(null) }).get("/readyz");
    expect([reply.status, reply.body]).toEqual([
      200,
      { object: "readiness", ready: true, checks: [{ name: "disk", ok: true, message: null }] },
    ]);
  });

  test("is 503 where it is not, and says which check fails", async () => {
    const response = await shellWith({ operation: operation(null, false) }).ask(new Request(`${URL}/readyz`));
    expect([response.status, await response.json()]).toEqual([
      503,
      {
        ...{ object: "readiness", ready: false },
        checks: [{ name: "disk", ok: false, message: "The disk has less than 100 MiB left." }],
      },
    ]);
  });

  test("and /healthz also answer callers who have used up their rate limit", async () => {
    const { get } = shellWith({ operation: operation(null), rateLimits: { read: 1, write: 1, bench: 1 } });
    await get("/docs");
    expect((await get("/docs")).status).toBe(429);
    for (const path of ["/readyz", "/healthz"]) {
      const { status, headers } = await get(path);
      expect([status, headers.get("ratelimit-remaining")]).toEqual([200, "0"]);
    }
  });
});

describe("/metrics", () => {
  const withToken = { Authorization: `Bearer ${TOKEN}` };
  let home: TestOrganisation;
  let client: ReturnType<typeof shellWith>;
  beforeEach(async () => {
    client = shellWith({ operation: operation(sha256(TOKEN)) });
    home = await makeOrganisation(ctx, client);
  });

  test("is Prometheus text to whoever has the token", async () => {
    const { status, headers, text } = await client.get("/metrics", { as: withToken });
    expect([status, headers.get("content-type")]).toEqual([200, "text/plain; version=0.0.4; charset=utf-8"]);
    expect(text).toContain('\nholdfast_money{mode="live",asset="USDC",state="available"} 1000000\n');
    expect(text).toContain('\nholdfast_warrants{state="held"} 0\n');
  });

  test("adds up amounts whose sum is too large for an integer of the ledger", async () => {
    const other = await makeOrganisation(ctx, client, 0n);
    for (const organisation of [home, other]) {
      const amount = String(2n ** 63n - 1n);
      await fundBalance(ctx, MACHINE, {
        organisation_id: organisation.id,
        mode: "live",
        asset: "BIG",
        amount,
      });
    }
    const totals = ctx.reader.balances.totals().filter(({ asset }) => asset === "BIG");
    expect(totals.map(({ balance }) => balance.available)).toEqual([2n * (2n ** 63n - 1n)]);
    const { text } = await client.get("/metrics", { as: withToken });
    expect(text).toContain(
      '\nholdfast_money{mode="live",asset="BIG",state="available"} 18446744073709552000\n',
    );
  });

  const STRANGERS: readonly (readonly [who: string, as: () => Record<string, string>])[] = [
    ["nobody", () => ({})],
    ["another token", () => ({ Authorization: `Bearer ${TOKEN}x` })],
    ["the token as another scheme", () => ({ Authorization: `Basic ${TOKEN}` })],
    ["the token as the worker's header", () => ({ "X-Service-Worker": TOKEN })],
    ["an API key", () => home.live.as],
    ["an owner", () => home.people.owner.as],
  ];
  for (const [who, as] of STRANGERS) {
    test(`is closed to ${who}`, async () => {
      const reply = await client.get("/metrics", { as: as() });
      expect([reply.status, reply.code]).toEqual([401, "not_authenticated"]);
      expect(reply.text).not.toContain("holdfast_");
    });
  }

  test("is 404 where no token is configured, whatever is sent", async () => {
    const closed = shellWith({ operation: operation(null) });
    for (const as of [withToken, { Authorization: "Bearer null" }, {}]) {
      const reply = await closed.get("/metrics", { as });
      expect([reply.status, reply.code]).toEqual([404, "route_not_found"]);
    }
  });
});

describe("every answer is counted and logged", () => {
  const answersLogged = () =>
    answered.splice(0).map(({ durationMs, client, ...answer }) => {
      expect(durationMs).toBeGreaterThan(0);
      expect(client().agent.length).toBeLessThanOrEqual(200);
      return answer;
    });

  test("by its route's pattern, its caller's kind and both ids, and nothing of the query, the body or a secret", async () => {
    const client = shellWith();
    const home = await makeOrganisation(ctx, client);
    answersLogged();
    const secret = "a-secret-of-the-query";
    await client.get(`/v1/warrants/wrt_${secret}`, { as: home.live.as, headers: { "X-Request-Id": "mine" } });
    await client.get(`/v1/warrants?${secret}=1`, { as: home.people.viewer.as });
    await client.get(`/${secret}?${secret}`);
    await client.send("HEAD", "/healthz");
    await client.post("/v1/warrants", { secret }, { as: { Authorization: `Bearer ${secret}` } });
    const answers = answersLogged();
    expect(answers.map(({ requestId, ...rest }) => rest)).toEqual([
      {
        ...{ callerRequestId: "mine", method: "GET", route: "/v1/warrants/:id", status: 404 },
        ...{ refused: "warrant_not_found", caller: "key", callerId: home.live.keyId },
      },
      {
        ...{ callerRequestId: null, method: "GET", route: "/v1/warrants", status: 400 },
        ...{ refused: "validation_failed", caller: "person", callerId: home.people.viewer.id },
      },
      {
        ...{ callerRequestId: null, method: "GET", route: null, status: 404 },
        ...{ refused: "route_not_found", caller: null, callerId: null },
      },
      {
        ...{ callerRequestId: null, method: "HEAD", route: "/healthz", status: 200 },
        ...{ refused: null, caller: null, callerId: null },
      },
      {
        ...{ callerRequestId: null, method: "POST", route: "/v1/warrants", status: 401 },
        ...{ refused: "not_authenticated", caller: null, callerId: null },
      },
    ]);
    for (const { requestId } of answers) expect(requestId).toMatch(/^req_[0-9A-Z]{26}$/);
    const everything = JSON.stringify(answers);
    for (const hidden of [secret, home.live.secret, home.id]) expect(everything).not.toContain(hidden);
  });

  test("also where it is a fault", async () => {
    const client = shellWith({
      onFault: () => {},
      operation: {
        readiness: async () => {
          throw new Error("broken");
        },
        metrics: async () => "",
        metricsTokenHash: null,
      },
    });
    expect((await client.get("/readyz")).status).toBe(500);
    expect(answersLogged()).toMatchObject([{ route: "/readyz", status: 500 }]);
  });
});
