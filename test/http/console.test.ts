import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createSession, revokeSession } from "../../src/services/admin/sessions.ts";
import { createVerifier } from "../../src/services/admin/verifiers.ts";
import type { Json } from "../support/client.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** GET /v1/console/*: what people see of what the console manages (interface.md, Console read-backs). */

let service: ShellService;
let home: TestOrganisation;
beforeAll(async () => {
  service = startTestShell();
  home = await service.organisation();
});
afterAll(() => service?.close());

const LISTS = ["verifiers", "agents", "policies", "escalations"] as const;
const read = (list: string, as = home.people.viewer.as) => service.get(`/v1/console/${list}`, { as });
const NOW = (): string => new Date(service.clock.now).toISOString();

test("for people, from viewer up; never for a key", async () => {
  const { viewer, operator, admin, owner } = home.people;
  for (const list of LISTS) {
    for (const { as } of [viewer, operator, admin, owner]) {
      const reply = await read(list, as);
      expect([list, reply.status, reply.body.object]).toEqual([list, 200, "list"]);
      expect(reply.headers.get("etag")).toBeNull();
    }
    expect((await read(list, home.live.as)).code).toBe("user_session_required");
    expect((await read(list, home.sandbox.as)).code).toBe("user_session_required");
    expect((await read(list, {} as typeof viewer.as)).code).toBe("not_authenticated");
    expect((await read(`${list}?limit=5`)).code).toBe("validation_failed");
    expect((await service.send("HEAD", `/v1/console/${list}`, undefined, { as: viewer.as })).status).toBe(
      200,
    );
  }
});

test("verifiers, with the registry of eight kinds", async () => {
  const save = (name: string, type: "http.status" | "data.freshness", config: object) =>
    createVerifier(service.ctx, MACHINE, { organisation_id: home.id, type, name, config }).then(must);
  const status = await save("up", "http.status", { equals: 200 });
  const fresh = await save("fresh", "data.freshness", { maxAgeSeconds: 60 });
  const { body } = await read("verifiers");
  expect(body.templates.map(({ kind }: Json) => kind)).toEqual([
    "http.status",
    "json.schema",
    "json.jsonpath",
    "file.sha256",
    "data.freshness",
    "uptime.window",
    "chain.event",
    "llm.judge",
  ]);
  for (const template of body.templates)
    expect(Object.keys(template).sort()).toEqual(["description", "kind"]);
  const byId = (a: Json, b: Json) => (a.id < b.id ? -1 : 1);
  expect(body.data.toSorted(byId)).toMatchObject([
    { id: status.id, type: "http.status", name: "up", config: { equals: 200 }, created_at: NOW() },
    { id: fresh.id, type: "data.freshness", name: "fresh", config: { maxAgeSeconds: 60 }, created_at: NOW() },
  ]);
  expect(status.id).toMatch(/^vrf_/);
  expect(Object.keys(body).sort()).toEqual(["data", "object", "templates"]);
});

test("policies: every version, newest first within each name, with the hash of its rules", async () => {
  const own = await service.organisation();
  const rules = (outcome: string) => ({ bands: [{ minScore: 0, outcome }] });
  const old = await own.addPolicy(rules("refund"), { name: "a" });
  const other = await own.addPolicy(rules("release"), { name: "b" });
  const newer = await own.addPolicy(rules("escalate"), { name: "a" });
  const agents = await own.addPolicy(rules("escalate"), { name: "a", agent_id: own.live.id });
  const { body } = await read("policies", own.people.viewer.as);
  const found = new Map<string, Json>(body.data.map((policy: Json) => [policy.id, policy]));
  expect(found.size).toBe(4);
  expect(found.get(newer.id)).toMatchObject({
    agent_id: null,
    name: "a",
    version: 2,
    rules: rules("escalate"),
    rules_hash: createHash("sha256").update('{"bands":[{"minScore":0,"outcome":"escalate"}]}').digest("hex"),
    created_at: NOW(),
  });
  expect(found.get(agents.id)).toMatchObject({ agent_id: own.live.id, name: "a", version: 1 });
  expect(found.get(other.id)).toMatchObject({ name: "b", version: 1 });
  const order: readonly string[] = body.data.map(({ id }: Json) => id);
  expect(order.indexOf(newer.id)).toBeLessThan(order.indexOf(old.id));
});

test("agents: status, failures, policy, live session and counts by state", async () => {
  const own = await service.organisation();
  const as = own.people.viewer.as;
  const agent = await own.addAgent({ failure_budget: 2 });
  const find = async (): Promise<Json> =>
    (await read("agents", as)).body.data.find(({ id }: Json) => id === agent.id);
  expect(await find()).toMatchObject({
    id: expect.stringMatching(/^agt_/),
    name: expect.any(String),
    identity: expect.stringMatching(/^did:/),
    status: "active",
    failure_budget: 2,
    failure_count: 0,
    created_at: NOW(),
    policy: null,
    session: null,
    warrants: { total: 0, by_state: {} },
  });

  await own.addPolicy({ bands: [{ minScore: 0, outcome: "refund" }] }, { name: "house" });
  expect((await find()).policy).toEqual({ agentId: null, name: "house", version: 1 });
  await own.addPolicy({ bands: [{ minScore: 0, outcome: "refund" }] }, { name: "own", agent_id: agent.id });
  expect((await find()).policy).toEqual({ agentId: agent.id, name: "own", version: 1 });

  const limits = { amount_ceiling: "1000", warrant_limit: 9, expires_at: service.timeIn(7_200_000) };
  const session = must(await createSession(service.ctx, MACHINE, { agent_id: agent.id, ...limits }));
  const spec = { clauses: [{ kind: "http.status", equals: 500 }] };
  const warrants = [];
  for (let count = 0; count < 3; count++)
    warrants.push(await service.opened(own, { agent_id: agent.id, spec }, { as: agent.as }));
  const source_url = "http://source.example/";
  await service.post(`/v1/warrants/${warrants[0].id}/verify`, { source_url }, { as: agent.as });
  await service.post(`/v1/warrants/${warrants[1].id}/release`, undefined, { as: own.people.operator.as });
  expect(await find()).toMatchObject({
    status: "active",
    failure_count: 1,
    session: {
      id: session.id,
      amount_ceiling: "1000",
      amount_spent: "200",
      warrant_limit: 9,
      warrant_count: 3,
      failure_budget: 2,
      failure_count: 1,
      expires_at: limits.expires_at,
    },
    warrants: { total: 3 },
  });
  const counts = Object.entries((await find()).warrants.by_state).filter(([, count]) => count !== 0);
  expect(Object.fromEntries(counts)).toEqual({ held: 1, refunded: 1, released: 1 });

  // The second failure in a row reaches the budget: the agent pauses itself.
  await service.post(`/v1/warrants/${warrants[2].id}/verify`, { source_url }, { as: agent.as });
  expect(await find()).toMatchObject({ status: "paused", failure_count: 2 });
  must(await revokeSession(service.ctx, MACHINE, { session_id: session.id }));
  expect((await find()).session).toBeNull();
});

test("agents and escalations are of one mode; policies and verifiers are the organisation's", async () => {
  const own = await service.organisation();
  const other = await service.organisation();
  await own.addPolicy({ bands: [{ minScore: 0, outcome: "escalate" }] });
  const { id } = await service.opened(own);
  await service.post(`/v1/warrants/${id}/verify`, { source_url: "http://a.example/" }, { as: own.live.as });
  const { viewer } = own.people;
  const sandbox = await own.signIn(viewer, "sandbox");
  const ids = async (list: string, as = viewer.as): Promise<readonly string[]> =>
    (await read(list, as)).body.data.map((entry: Json) => entry.id);
  expect([await ids("agents"), await ids("agents", sandbox)]).toEqual([[own.live.id], [own.sandbox.id]]);
  expect([(await ids("escalations")).length, (await ids("escalations", sandbox)).length]).toEqual([1, 0]);
  expect(await ids("policies", sandbox)).toEqual([...(await ids("policies"))]);
  for (const list of ["escalations", "policies", "verifiers"])
    expect([list, await ids(list, other.people.owner.as)]).toEqual([list, []]);
  expect(await ids("agents", other.people.owner.as)).toEqual([other.live.id]);
});

test("no list shows a secret", async () => {
  for (const list of LISTS) {
    const { text } = await read(list, home.people.owner.as);
    expect(text).not.toMatch(/hf_(live|test)_|secret|password|token/i);
  }
});
