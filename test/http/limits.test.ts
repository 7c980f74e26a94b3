import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { parseNetwork } from "../../src/core/networks.ts";
import { type Counted, clientAddress, createRateCounters } from "../../src/http/limits.ts";
import { createShell } from "../../src/http/shell.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createKey } from "../../src/services/admin/keys.ts";
import { type Client, type Credentials, freshKey, NOBODY, type Reply } from "../support/client.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** docs/idempotency, "Limits". The clock stands still until a test moves it. */

const LIMITS = { read: 5, write: 8, bench: 3 };

let service: ShellService;
let home: TestOrganisation;
beforeEach(async () => {
  service = startTestShell({ rateLimits: { ...LIMITS } });
  home = await service.organisation();
  service.clock.now = Math.ceil(service.clock.now / 60_000) * 60_000 + 60_000;
});
afterEach(() => service.close());

const read = (as: Credentials, from: Client = service): Promise<Reply> => from.get("/v1/warrants", { as });
const write = (as: Credentials, key = freshKey()): Promise<Reply> =>
  service.post("/v1/warrants", service.body({ amount: "1" }), { as, key });
const bench = (from: Client = service, as: Credentials = NOBODY): Promise<Reply> => {
  const clauses = [{ kind: "http.status", equals: 200 }];
  return from.post("/bench/run", { clauses, deliverable: { reached: true, status: 200 } }, { as, key: null });
};

/** Uses up a whole budget, checks the figures of each answer, and then gets 429 twice. */
async function exhaust(limit: number, send: () => Promise<Reply>): Promise<void> {
  for (let left = limit - 1; left >= 0; left--) {
    const { status, headers } = await send();
    expect(status).not.toBe(429);
    expect([headers.get("ratelimit-limit"), headers.get("ratelimit-remaining")]).toEqual([
      String(limit),
      String(left),
    ]);
  }
  for (let again = 0; again < 2; again++) await refusesNow(send);
}

async function refusesNow(send: () => Promise<Reply>): Promise<void> {
  const { status, code, headers } = await send();
  expect([status, code, headers.get("ratelimit-remaining")]).toEqual([429, "rate_limit_exceeded", "0"]);
  expect(headers.get("retry-after")).toBe(headers.get("ratelimit-reset"));
}

test("reads, writes and benches have buckets of their own; HEAD is a read", async () => {
  const { as } = home.live;
  await exhaust(LIMITS.read, () => read(as));
  await refusesNow(() =>
    service
      .send("HEAD", "/v1/warrants", undefined, { as })
      .then((reply) => ({ ...reply, code: "rate_limit_exceeded" })),
  );
  await exhaust(LIMITS.write, () => write(as));
  await exhaust(LIMITS.bench, () => bench());
});

test("the whole budget is back at the reset, which counts down, and not before", async () => {
  const { as } = home.live;
  service.clock.now += 12_345;
  await exhaust(LIMITS.write, () => write(as));
  expect((await write(as)).headers.get("retry-after")).toBe("48");
  service.clock.now += 47_000;
  const last = await write(as);
  expect([last.status, last.headers.get("retry-after")]).toEqual([429, "1"]);
  service.clock.now += 654;
  await refusesNow(() => write(as));
  service.clock.now += 1;
  const whole = await write(as);
  expect([
    whole.status,
    whole.headers.get("ratelimit-remaining"),
    whole.headers.get("ratelimit-reset"),
  ]).toEqual([201, String(LIMITS.write - 1), "60"]);
});

test("each key, each person and each address has a budget of its own", async () => {
  const second = must(await createKey(service.ctx, MACHINE, { agent_id: home.live.id }));
  await exhaust(LIMITS.write, () => write(home.live.as));
  await exhaust(LIMITS.write, () => write({ Authorization: `Bearer ${second.secret}` }));
  await exhaust(LIMITS.write, () => write(home.people.operator.as));
  await exhaust(LIMITS.write, () => write(home.people.admin.as));
  // A person is one caller, however often they sign in: the second cookie finds the budget spent.
  const again = await home.signIn(home.people.operator);
  await refusesNow(() => write(again));
  await exhaust(LIMITS.write, () => write(home.sandbox.as));
  for (const address of ["203.0.113.7", "203.0.113.8"])
    await exhaust(LIMITS.read, () => read(NOBODY, service.from(address)));
});

test("requests without credentials, with bad ones, and sign-ins are counted by address", async () => {
  const from = service.from("203.0.113.9");
  const sent: readonly (() => Promise<Reply>)[] = [
    () => from.post("/v1/warrants", {}),
    () => from.post("/v1/warrants", {}, { as: { Authorization: "Bearer hf_live_x" } }),
    () => from.post("/auth/session", { email: "a@example.com", password: "x" }),
    () => from.post("/v1/warrants/wrt_1/refund"),
  ];
  let turn = 0;
  const next = () => sent[turn++ % sent.length]!();
  await exhaust(LIMITS.write, next);
  // They do not use up the budget of a key at the same address.
  expect((await from.post("/v1/warrants", service.body(), { as: home.live.as })).status).toBe(201);
});

test("the bench is counted by key or person, without one by address, and IPv6 callers by their /64", async () => {
  await exhaust(LIMITS.bench, () => bench(service.from("2001:db8:1:2::1")));
  await refusesNow(() => bench(service.from("2001:db8:1:2:ffff:ffff:ffff:ffff")));
  await exhaust(LIMITS.bench, () => bench(service.from("2001:db8:1:2::1"), home.live.as));
  await refusesNow(() => bench(service.from("2001:db8:1:9::1"), home.live.as));
  expect((await bench(service.from("2001:db8:1:3::1"))).status).toBe(200);
  await exhaust(LIMITS.bench, () => bench(service.from("::ffff:203.0.113.10")));
  await refusesNow(() => bench(service.from("203.0.113.10")));
});

test("refusals count, unknown routes do not, and nothing moves over the limit", async () => {
  const { as } = home.live;
  for (let count = 0; count < LIMITS.write; count++) {
    expect((await service.post("/v1/nothing", {}, { as })).headers.get("ratelimit-remaining")).toBe(
      String(LIMITS.write),
    );
  }
  await exhaust(LIMITS.write, () => service.post("/v1/warrants", "{", { as }));
  await service.refuses(home, [429, "rate_limit_exceeded"], () => write(as));
});

test("a write that got 429 is retried with its key; a write that had succeeded replays", async () => {
  const { as } = home.live;
  const passed = freshKey();
  const first = await write(as, passed);
  expect(first.status).toBe(201);
  for (let status = 0; status !== 429; ) ({ status } = await write(as));
  const held = service.balance(home).held;
  const turned = freshKey();
  for (const key of [passed, turned]) await refusesNow(() => write(as, key));
  service.clock.now += 60_000;
  const again = await write(as, passed);
  expect([again.status, again.text, again.headers.get("idempotent-replayed")]).toEqual([
    201,
    first.text,
    "true",
  ]);
  const retried = await write(as, turned);
  expect([retried.status, retried.headers.get("idempotent-replayed")]).toEqual([201, null]);
  expect(service.balance(home).held).toBe(held + 1n);
});

test("/healthz costs nothing and always answers, and says what is left", async () => {
  const from = service.from("203.0.113.11");
  const health = async (left: number): Promise<void> => {
    const { status, headers } = await from.get("/healthz");
    expect([status, headers.get("ratelimit-remaining")]).toEqual([200, String(left)]);
  };
  for (let again = 0; again < LIMITS.read + 2; again++) await health(LIMITS.read);
  await exhaust(LIMITS.read, () => read(NOBODY, from));
  await health(0);
});

test("where very many addresses call, newcomers share a counter, and keys and people keep theirs", () => {
  const counters = createRateCounters({ read: 5, write: 5, bench: 5 }, 3);
  const left = (kind: Counted["kind"], id: string): number =>
    counters.take("read", { kind, id }, 0).remaining;
  expect(["a", "b", "c"].map((id) => left("address", id))).toEqual([4, 4, 4]);
  expect(["d", "e", "f"].map((id) => left("address", id))).toEqual([4, 3, 2]);
  expect(left("address", "a")).toBe(3);
  expect(["key_1", "usr_1"].map((id) => left("account", id))).toEqual([4, 4]);
  // An address that looks like a key is not one.
  expect(counters.peek("read", { kind: "address", id: "key_1" }, 0).remaining).toBe(2);
  expect(counters.take("read", { kind: "address", id: "d" }, 60_000).remaining).toBe(4);
});

describe("the client behind a trusted proxy", () => {
  const trusted = [parseNetwork("192.0.2.0/24")!, parseNetwork("2001:db8:f::/48")!];
  const clientOf = (socket: string, forwarded: string | null) =>
    clientAddress(socket, forwarded, trusted)?.toString();

  test("is the last hop, with or without a port", () => {
    for (const [forwarded, address] of [
      ["203.0.113.7", "203.0.113.7"],
      ["203.0.113.7:4711", "203.0.113.7"],
      ["[2001:db8::7]:4711", "2001:db8::7"],
      ["[2001:db8::7]", "2001:db8::7"],
      ["2001:db8::7", "2001:db8::7"],
      ["::ffff:203.0.113.7", "203.0.113.7"],
      ["198.51.100.1, 203.0.113.7:4711", "203.0.113.7"],
      ["203.0.113.7:4711, 192.0.2.9:80", "203.0.113.7"],
      ["203.0.113.7, [2001:db8:f::1]:80", "203.0.113.7"],
    ] as const) {
      expect([forwarded, clientOf("192.0.2.1", forwarded)]).toEqual([forwarded, address]);
    }
  });

  test("is the proxy, where the header has no address; and a stranger's header is not believed", () => {
    for (const forwarded of [
      null,
      "",
      "unknown",
      "203.0.113.7:port",
      "203.0.113.7:123456",
      "[203.0.113.7",
      ":80",
    ]) {
      expect([forwarded, clientOf("192.0.2.1", forwarded)]).toEqual([forwarded, "192.0.2.1"]);
    }
    expect(clientOf("198.51.100.9", "203.0.113.7:4711")).toBe("198.51.100.9");
  });
});

test("a forwarded header is warned of once, where no proxy is trusted, and never where one is", async () => {
  for (const trustedProxies of [[], [parseNetwork("10.0.0.0/8")!]]) {
    const warned: string[] = [];
    const shell = createShell(service.ctx, {
      ...{ docsUrl: "", rateLimits: LIMITS, trustedProxies, onFault: () => {} },
      onUntrustedProxy: (header) => void warned.push(header),
    });
    const send = (headers: Record<string, string>) =>
      shell(new Request("http://localhost/healthz", { headers }), () => "203.0.113.7");
    await send({});
    expect(warned).toEqual([]);
    for (let again = 0; again < 3; again++) {
      await send({ Forwarded: "for=203.0.113.7" });
      await send({ "X-Forwarded-For": "203.0.113.7" });
    }
    expect(warned).toEqual(trustedProxies.length === 0 ? ["forwarded"] : []);
  }
});
