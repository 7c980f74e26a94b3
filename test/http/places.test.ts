import { afterEach, describe, expect, test } from "bun:test";
import type { Mode } from "../../src/core/roles.ts";
import { EvaluatorUnavailable } from "../../src/platform/evaluator-pool.ts";
import { createPlaces, type Place, type Places } from "../../src/platform/places.ts";
import { freshKey } from "../support/client.ts";
import { evaluate } from "../support/evaluate.ts";
import { asksVoucher, delivers, openMarket, SELLER_URL } from "../support/market.ts";
import type { TestOrganisation } from "../support/organisations.ts";
import { type Service, startTestServer, startTestShell } from "../support/server.ts";
import { until } from "../support/until.ts";

/** Checks and purchases by x402 share places (docs/idempotency, "Checks under way"). */

let service: Service;
afterEach(() => service.close());

const SOURCE = { source_url: "https://source.example/" };
/** Every place that the organisation may have in a mode. */
function takeAll(places: Places, { id }: TestOrganisation, mode: Mode = "live"): readonly Place[] {
  const taken: Place[] = [];
  for (;;) {
    const place = places.take({ organisationId: id, mode });
    if (place === null) return taken;
    taken.push(place);
  }
}

describe("where no place is free in time", () => {
  test("a verify is 429, to be retried in a second; nothing moves, and the same key verifies after it", async () => {
    const places = createPlaces({ max: 4, waitMsMax: 1 });
    service = startTestShell({ places });
    const home = await service.organisation();
    const { id } = await service.opened(home);
    const as = home.live.as;
    const taken = takeAll(places, home);
    const key = freshKey();
    const path = `/v1/warrants/${id}/verify`;
    const reply = await service.refuses(
      home,
      [429, "rate_limit_exceeded", "Too many checks are running."],
      () => service.post(path, SOURCE, { as, key }),
    );
    expect(reply.headers.get("retry-after")).toBe("1");
    expect((await service.get(`/v1/warrants/${id}`, { as })).headers.get("etag")).toBe('"1"');
    for (const place of taken) place.leave();
    expect((await service.post(path, SOURCE, { as, key })).status).toBe(200);
  });

  test("a purchase is 429 too: no seller is asked, and the same key buys after it", async () => {
    const market = openMarket();
    market.first = asksVoucher("100");
    market.paid = () => delivers({});
    const places = createPlaces({ max: 4, waitMsMax: 1 });
    service = startTestShell({ places, x402: market.x402 });
    const home = await service.organisation();
    const as = home.sandbox.as;
    const body = {
      url: SELLER_URL,
      max_amount: "1000",
      spec: { clauses: [{ kind: "http.status", equals: 200 }] },
    };
    const taken = takeAll(places, home, "sandbox");
    const key = freshKey();
    const sent = market.sent.length;
    const reply = await service.refuses(
      home,
      [429, "rate_limit_exceeded", "Too many checks are running."],
      () => service.post("/v1/x402/pay", body, { as, key }),
    );
    expect([reply.headers.get("retry-after"), market.sent.length, market.x402.underWay.size]).toEqual([
      "1",
      sent,
      0,
    ]);
    for (const place of taken) place.leave();
    expect((await service.post("/v1/x402/pay", body, { as, key })).status).toBe(200);
    expect(places.figures("sandbox")).toEqual({ taken: 0, waiting: 0 });
  });
});

test("a caller that hangs up while it waits for a place waits no more", async () => {
  service = await startTestServer();
  const home = await service.organisation();
  const { id } = await service.opened(home);
  const { places } = service.ctx;
  const taken = takeAll(places, home);
  expect(taken.length).toBe(128);
  const caller = new AbortController();
  const sent = fetch(`${service.url}/v1/warrants/${id}/verify`, {
    method: "POST",
    headers: { ...home.live.as, "Content-Type": "application/json", "Idempotency-Key": freshKey() },
    body: JSON.stringify(SOURCE),
    signal: caller.signal,
  }).catch(() => null);
  await until("it waits", () => places.figures("live").waiting === 1);
  caller.abort();
  await sent;
  // Long before its 5 s are over.
  await until("it waits no more", () => places.figures("live").waiting === 0, 3_000);
  for (const place of taken) place.leave();
  expect((await service.get(`/v1/warrants/${id}`, { as: home.live.as })).body.version).toBe(1);
});

test("what no child began to evaluate is 500, whose message says that the key may be sent again", async () => {
  let isAway = true;
  const faults: unknown[] = [];
  service = startTestShell({
    evaluate: async ({ clauses, evidence, schemas, now }) => {
      if (isAway) throw new EvaluatorUnavailable("no child began to evaluate");
      return evaluate(clauses, evidence, schemas, now);
    },
    onFault: (error) => void faults.push(error),
  });
  const home = await service.organisation();
  const { id } = await service.opened(home);
  const options = { as: home.live.as, key: freshKey() };
  const path = `/v1/warrants/${id}/verify`;
  const reply = await service.post(path, SOURCE, options);
  expect([reply.status, reply.code, reply.body.error.message]).toEqual([
    ...[500, "internal_error"],
    "The check could not be made, and nothing was decided: the warrant is held. Retry with the same Idempotency-Key.",
  ]);
  expect(faults).toMatchObject([{ cause: { message: "no child began to evaluate" } }]);
  isAway = false;
  expect((await service.post(path, SOURCE, options)).body.state).toBe("released");
});
