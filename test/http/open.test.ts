import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { type Service, startTestServer } from "../support/server.ts";

/** POST /v1/warrants: what opens, and what is answered (docs/concepts, "Bounds"). */

const MAX = 9_223_372_036_854_775_807n;
const FIVE_YEARS_MS = 5 * 365 * 86_400_000;

let service: Service;
let home: TestOrganisation;
beforeAll(async () => {
  service = await startTestServer();
  home = await service.organisation();
});
afterAll(() => service?.close());

const open = (overrides: object, as = home.live.as) =>
  service.post("/v1/warrants", service.body(overrides), { as });

test("an open answers 201 with every field of the warrant, and holds the amount", async () => {
  const fresh = await service.organisation();
  const before = Date.now();
  const body = service.body({ amount: "8400000" });
  const reply = await service.post("/v1/warrants", service.body({ amount: "840" }), { as: fresh.live.as });
  expect(reply.status).toBe(201);
  expect(reply.headers.get("etag")).toBe('"1"');
  expect(reply.headers.get("idempotent-replayed")).toBeNull();
  expect(reply.body).toEqual({
    id: expect.stringMatching(/^wrt_[0-7][0-9A-HJKMNP-TV-Z]{25}$/),
    object: "warrant",
    state: "held",
    version: 1,
    amount: "840",
    asset: "USDC",
    released_bps: null,
    payee: "acme",
    spec_hash: createHash("sha256").update('{"clauses":[{"equals":200,"kind":"http.status"}]}').digest("hex"),
    spec: body.spec,
    agent_id: null,
    verifier_id: null,
    policy_id: null,
    policy_version: null,
    deadline: body.deadline,
    opened_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    settled_at: null,
    created_at: reply.body.opened_at,
  });
  expect(Date.parse(reply.body.opened_at)).toBeGreaterThanOrEqual(before);
  expect(service.balance(fresh)).toEqual({ available: 999_160n, held: 840n, paid: 0n });
  expect(service.balance(fresh, "sandbox")).toEqual({ available: 1_000_000n, held: 0n, paid: 0n });
  const trace = await service.get(`/v1/warrants/${reply.body.id}/trace`, { as: fresh.live.as });
  expect(trace.body.data).toMatchObject([
    { to: "held", from: null, actor: { kind: "agent", id: fresh.live.keyId } },
  ]);
});

test("a person from operator up opens too, and is the actor; the mode is that of the sign-in", async () => {
  const { operator, admin, owner } = home.people;
  const sandbox = await home.signIn(operator, "sandbox");
  for (const [person, as] of [
    [operator, operator.as],
    [admin, admin.as],
    [owner, owner.as],
    [operator, sandbox],
  ] as const) {
    const reply = await open({}, as);
    expect([reply.status, reply.body.agent_id]).toEqual([201, null]);
    const trace = await service.get(`/v1/warrants/${reply.body.id}/trace`, { as });
    expect(trace.body.data[0].actor).toEqual({ kind: "user", id: person.id });
    const mode = as === sandbox ? "sandbox" : "live";
    expect(service.ctx.reader.warrants.find(reply.body.id)?.mode).toBe(mode);
  }
});

describe("a body within the bounds opens, and is normalised", () => {
  const clauses = (count: number) =>
    Array.from({ length: count }, (_, equals) => ({ kind: "http.status", equals }));
  /** A spec whose canonical JSON has exactly so many bytes. */
  const specOf = (bytes: number) => {
    const spec = { clauses: [{ kind: "json.jsonpath", path: "$", equals: "" }] };
    const empty = JSON.stringify(spec).length;
    spec.clauses[0]!.equals = "x".repeat(bytes - empty);
    return { spec };
  };
  const scenarios: readonly [name: string, sent: () => object, answered: () => object][] = [
    ["the smallest amount", () => ({ amount: "1" }), () => ({ amount: "1" })],
    ["leading zeros", () => ({ amount: "0000000000000000000000007" }), () => ({ amount: "7" })],
    ["an asset of 32 characters", () => ({ asset: ODD_ASSET, amount: "1" }), () => ({ asset: ODD_ASSET })],
    ["a payee of 1 character", () => ({ payee: "x" }), () => ({ payee: "x" })],
    ["a payee of 512", () => ({ payee: "é".repeat(512) }), () => ({ payee: "é".repeat(512) })],
    [
      "a payee of 512 beyond the BMP",
      () => ({ payee: "💶".repeat(512) }),
      () => ({ payee: "💶".repeat(512) }),
    ],
    ["64 clauses", () => ({ spec: { clauses: clauses(64) } }), () => ({ spec: { clauses: clauses(64) } })],
    ["a spec of 64 kB", () => specOf(65_536), () => specOf(65_536)],
    ["a deadline in a zone", () => ({ deadline: zoned }), () => ({ deadline: whole })],
    ["a deadline in lower case", () => ({ deadline: whole.toLowerCase() }), () => ({ deadline: whole })],
    [
      "a deadline without a fraction",
      () => ({ deadline: `${whole.slice(0, 19)}Z` }),
      () => ({ deadline: whole }),
    ],
    ["a deadline 5 years ahead", () => ({ deadline: far }), () => ({ deadline: far })],
    ["unknown keys inside equals", () => ({ spec: nested }), () => ({ spec: nested })],
  ];
  const ODD_ASSET = "eip155:84532.0x036C-b_53842c5426";
  const nested = {
    clauses: [{ kind: "json.jsonpath", path: "$.a", equals: { b: [1, "2", null, { c: 0.5 }] } }],
  };
  const far = new Date(Date.now() + FIVE_YEARS_MS).toISOString();
  const whole = `${new Date(Date.now() + 86_400_000).toISOString().slice(0, 19)}.000Z`;
  const zoned = `${new Date(Date.parse(whole) + 5.5 * 3_600_000).toISOString().slice(0, 19)}.000+05:30`;

  for (const [name, sent, answered] of scenarios) {
    test(name, async () => {
      must(
        await fundBalance(service.ctx, MACHINE, {
          organisation_id: home.id,
          mode: "live",
          amount: "10",
          asset: ODD_ASSET,
        }),
      );
      const before = service.balance(home, "live", (sent() as { asset?: string }).asset);
      const body = sent();
      const reply = await open({ amount: "1", ...body });
      expect([reply.status, reply.code]).toEqual([201, null]);
      expect(reply.body).toMatchObject(answered());
      const after = service.balance(home, "live", reply.body.asset);
      expect(after.held - before.held).toBe(BigInt(reply.body.amount));
      const read = await service.get(`/v1/warrants/${reply.body.id}`, { as: home.live.as });
      expect(read.body).toEqual(reply.body);
    });
  }

  test("the largest amount", async () => {
    const rich = await service.organisation(MAX);
    const opened = await service.opened(rich, { amount: String(MAX) });
    expect(opened.amount).toBe("9223372036854775807");
    expect(service.balance(rich)).toEqual({ available: 0n, held: MAX, paid: 0n });
    const released = await service.post(`/v1/warrants/${opened.id}/release`, undefined, {
      as: rich.people.operator.as,
    });
    expect(released.body).toMatchObject({ state: "released", released_bps: 10_000, amount: String(MAX) });
    expect(service.balance(rich)).toEqual({ available: 0n, held: 0n, paid: MAX });
  });
});

test("an amount that the balance does not cover is 402, and leaves no warrant", async () => {
  const poor = await service.organisation(99n);
  const { as } = poor.live;
  const key = "short";
  const body = service.body();
  const refused = [402, "insufficient_funds"] as const;
  await service.refuses(poor, refused, () => service.post("/v1/warrants", body, { as, key }));
  await service.refuses(poor, refused, () => open({ asset: "EUR", amount: "1" }, as));
  const listed = await service.get("/v1/warrants", { as });
  expect(listed.body).toMatchObject({ data: [], has_more: false });
  // The refusal did not bind the key: the same request opens once the money is there.
  must(await fundBalance(service.ctx, MACHINE, { organisation_id: poor.id, mode: "live", amount: "1" }));
  const opened = await service.post("/v1/warrants", body, { as, key });
  expect([opened.status, service.balance(poor)]).toEqual([201, { available: 0n, held: 100n, paid: 0n }]);
});
