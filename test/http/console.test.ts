import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { UNSEEN_ANSWER } from "../../src/core/capsule.ts";
import { reachedEvidence } from "../../src/core/clauses/evidence.ts";
import { STATES } from "../../src/core/warrant.ts";
import { setAgentStatus } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createSession, revokeSession } from "../../src/services/admin/sessions.ts";
import { createUser, removeUser } from "../../src/services/admin/users.ts";
import { createVerifier } from "../../src/services/admin/verifiers.ts";
import { createWebhook } from "../../src/services/admin/webhooks.ts";
import type { Json } from "../support/client.ts";
import { must, PASSWORD, type TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** GET /v1/console/*: what people see of agents, policies, verifiers and the rest that only people manage. */

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

test("are for people, from viewer up; never for a key", async () => {
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
    expect((await read(`${list}?offset=5`)).code).toBe("validation_failed");
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
  const saved = { object: "verifier", created_at: NOW() };
  expect(body.data.toSorted(byId)).toEqual([
    { ...saved, id: status.id, type: "http.status", name: "up", config: { equals: 200 } },
    { ...saved, id: fresh.id, type: "data.freshness", name: "fresh", config: { maxAgeSeconds: 60 } },
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
  expect(found.get(newer.id)).toEqual({
    id: newer.id,
    object: "policy",
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
  const agent = await own.addAgent({ failure_budget: 2, must_be_named: true });
  const find = async (): Promise<Json> =>
    (await read("agents", as)).body.data.find(({ id }: Json) => id === agent.id);
  expect(await find()).toEqual({
    id: expect.stringMatching(/^agt_[0-7][0-9A-HJKMNP-TV-Z]{25}$/),
    object: "agent",
    mode: "live",
    name: expect.stringMatching(/^agent-/),
    identity: `did:web:localhost%3A8080:agents:${agent.id}`,
    status: "active",
    failure_budget: 2,
    failure_count: 0,
    must_be_named: true,
    created_at: NOW(),
    policy: null,
    session: null,
    warrants: { total: 0, by_state: {} },
  });

  await own.addPolicy({ bands: [{ minScore: 0, outcome: "refund" }] }, { name: "house" });
  const limits = { amount_ceiling: "1000", warrant_limit: 9, expires_at: service.timeIn(7_200_000) };
  const session = must(await createSession(service.ctx, MACHINE, { agent_id: agent.id, ...limits }));
  const spec = { clauses: [{ kind: "http.status", equals: 500 }] };
  const warrants = [];
  for (let count = 0; count < 3; count++)
    warrants.push(await service.opened(own, { agent_id: agent.id, spec }, { as: agent.as }));
  const source_url = "http://source.example/";
  await service.post(`/v1/warrants/${warrants[0].id}/verify`, { source_url }, { as: agent.as });
  await service.post(`/v1/warrants/${warrants[1].id}/release`, undefined, { as: own.people.operator.as });
  const busy = await find();
  expect(busy).toMatchObject({ status: "active", failure_count: 1, warrants: { total: 3 } });
  // Every field of a session, and no other.
  expect({ session: busy.session }).toEqual({
    session: {
      id: session.id,
      amount_ceiling: "1000",
      amount_spent: "200",
      warrant_limit: 9,
      warrant_count: 3,
      failure_budget: 2,
      failure_count: 1,
      per_warrant_max: null,
      hourly_max: null,
      daily_max: null,
      payees: null,
      source_origins: null,
      expires_at: limits.expires_at,
    },
  });
  const counts = Object.entries((await find()).warrants.by_state).filter(([, count]) => count !== 0);
  expect(Object.fromEntries(counts)).toEqual({ held: 1, refunded: 1, released: 1 });

  // The second failure in a row reaches the budget, so the agent is paused.
  await service.post(`/v1/warrants/${warrants[2].id}/verify`, { source_url }, { as: agent.as });
  expect(await find()).toMatchObject({ status: "paused", failure_count: 2 });
  must(await revokeSession(service.ctx, MACHINE, { session_id: session.id }));
  expect((await find()).session).toBeNull();
});

test("an agent's policy is its own newest, else the organisation's newest, else null: the one that an open pins", async () => {
  const own = await service.organisation();
  const [agent, other] = [await own.addAgent(), await own.addAgent()];
  const rules = { bands: [{ minScore: 0, outcome: "refund" }] };
  const shown = async (): Promise<Json> => {
    const { body } = await read("agents", own.people.viewer.as);
    const policyOf = ({ id }: { id: string }) => body.data.find((found: Json) => found.id === id).policy;
    return [policyOf(agent), policyOf(other)];
  };
  const expectPinned = async (): Promise<void> => {
    const [policy] = await shown();
    const policies = (await read("policies", own.people.viewer.as)).body.data;
    const row = policies.find(
      ({ agent_id, name, version }: Json) =>
        policy && Bun.deepEquals({ agentId: agent_id, name, version }, policy),
    );
    const pinned = await service.opened(own, { agent_id: agent.id }, { as: agent.as });
    expect([pinned.policy_id, pinned.policy_version]).toEqual([row?.id ?? null, policy?.version ?? null]);
  };
  expect(await shown()).toEqual([null, null]);
  await expectPinned();
  const house = { agentId: null, name: "house", version: 1 };
  await own.addPolicy(rules, { name: "house" });
  expect(await shown()).toEqual([house, house]);
  await own.addPolicy(rules, { name: "house" });
  const newest = { ...house, version: 2 };
  expect(await shown()).toEqual([newest, newest]);
  await expectPinned();
  await own.addPolicy(rules, { name: "own", agent_id: agent.id });
  expect(await shown()).toEqual([{ agentId: agent.id, name: "own", version: 1 }, newest]);
  await expectPinned();
  // Another name of the same owner, newer: versions count by name.
  await own.addPolicy(rules, { name: "spare" });
  await own.addPolicy(rules, { name: "own", agent_id: agent.id });
  await own.addPolicy(rules, { name: "later", agent_id: agent.id });
  expect(await shown()).toEqual([
    { agentId: agent.id, name: "later", version: 1 },
    { agentId: null, name: "spare", version: 1 },
  ]);
  await expectPinned();
});

test("an agent's session is the live one: not revoked, not expired; null where there is none", async () => {
  const own = await service.organisation();
  const agent = await own.addAgent();
  const create = (more: object = {}) =>
    createSession(service.ctx, MACHINE, { agent_id: agent.id, amount_ceiling: "100", ...more }).then(must);
  const shown = async (): Promise<Json> => {
    const { body } = await read("agents", own.people.viewer.as);
    return body.data.find(({ id }: Json) => id === agent.id).session?.id ?? null;
  };
  expect(await shown()).toBeNull();
  const first = await create();
  expect(await shown()).toBe(first.id);
  const second = await create({ expires_at: service.timeIn(60_000) });
  expect(await shown()).toBe(second.id);
  // A session that is used up is still live.
  await service.opened(own, { agent_id: agent.id }, { as: agent.as });
  expect(await shown()).toBe(second.id);
  service.clock.now += 60_000;
  expect(await shown()).toBeNull();
  const third = await create();
  expect(await shown()).toBe(third.id);
  must(await revokeSession(service.ctx, MACHINE, { session_id: third.id }));
  expect(await shown()).toBeNull();
});

test("an agent's warrants are counted in every state that they can be in", async () => {
  const hanging = Promise.withResolvers<void>();
  const shell = startTestShell({
    async fetchEvidence(url) {
      if (url.endsWith("/hangs")) await hanging.promise;
      const evidence = reachedEvidence({ status: 200, body: Buffer.from("{}") });
      return { evidence, status: 200, bytes: 2, durationMs: 1, answer: UNSEEN_ANSWER };
    },
  });
  const own = await shell.organisation();
  const agent = await own.addAgent({ failure_budget: 100 });
  const { operator, viewer } = own.people;
  const spec = (equals: number) => ({ clauses: [{ kind: "http.status", equals }] });
  const open = (equals = 200): Promise<Json> => {
    const terms = { agent_id: agent.id, spec: spec(equals), deadline: shell.timeIn(3_600_000) };
    return shell.opened(own, terms, { as: agent.as });
  };
  const verify = ({ id }: Json, path = "") =>
    shell.post(
      `/v1/warrants/${id}/verify`,
      { source_url: `http://source.example/${path}` },
      { as: agent.as },
    );
  const decide = async (path: string, body?: object) =>
    expect((await shell.post(path, body, { as: operator.as })).status).toBe(200);
  const counts = async (): Promise<Json> => {
    const { body } = await shell.get("/v1/console/agents", { as: viewer.as });
    const { total, by_state } = body.data.find(({ id }: Json) => id === agent.id).warrants;
    expect(Object.keys(by_state).filter((state) => !(STATES as readonly string[]).includes(state))).toEqual(
      [],
    );
    const listed = await shell.get(`/v1/warrants?agent_id=${agent.id}&limit=100`, { as: viewer.as });
    expect(total).toBe(listed.body.data.length);
    return Object.fromEntries(Object.entries(by_state).filter(([, count]) => count !== 0));
  };

  const late = await open();
  shell.clock.now += 3_600_000;
  expect((await verify(late)).code).toBe("illegal_transition");
  for (const [verb, body] of [["release"], ["partial", { released_bps: 5_000 }], ["refund"]] as const)
    await decide(`/v1/warrants/${(await open()).id}/${verb}`, body);
  const disputed = await open(500);
  await verify(disputed);
  await decide(`/v1/console/escalations/${disputed.id}/resolve`, { decision: "dispute" });
  await verify(await open(500));
  const hangs = verify(await open(), "hangs");
  await open();
  await open();
  const others = { expired: 1, released: 1, partially_released: 1, refunded: 1, disputed: 1, escalated: 1 };
  expect(await counts()).toEqual({ ...others, verifying: 1, held: 2 });
  must(await setAgentStatus(shell.ctx, MACHINE, { agent_id: agent.id, status: "killed" }));
  expect(await counts()).toEqual({ ...others, verifying: 1, frozen: 2 });
  hanging.resolve();
  await hangs;
  expect(await counts()).toEqual({ ...others, escalated: 2, frozen: 2 });
  await shell.close();
});

test("agents and escalations belong to one mode; policies and verifiers to the organisation", async () => {
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

describe("a page", () => {
  const PAGED = [...LISTS, "keys", "users", "webhooks"] as const;
  let crowded: TestOrganisation;
  const ask = (path: string) => service.get(`/v1/console/${path}`, { as: crowded.people.owner.as });
  const idsOf = ({ data }: Json): string[] => data.map(({ id }: Json) => id);
  beforeAll(async () => {
    crowded = await service.organisation();
    const scope = { organisation_id: crowded.id, mode: "live" } as const;
    for (const name of ["a", "b", "c"]) {
      await crowded.addAgent({ name });
      await crowded.addPolicy({ bands: [{ minScore: 0, outcome: "escalate" }] }, { name });
      const clause = { type: "http.status", name, config: { equals: 200 } } as const;
      must(await createVerifier(service.ctx, MACHINE, { organisation_id: crowded.id, ...clause }));
      const url = `https://hook.example/${name}`;
      must(await createWebhook(service.ctx, MACHINE, { ...scope, url, events: [] }));
      const { id } = await service.opened(crowded);
      await service.post(
        `/v1/warrants/${id}/verify`,
        { source_url: "http://source.example/" },
        {
          as: crowded.live.as,
        },
      );
    }
  });

  test.each(PAGED)("of %s has as many as are asked for, and pages give the whole list", async (list) => {
    const { body: whole } = await ask(list);
    expect(whole.data.length).toBeGreaterThanOrEqual(3);
    expect([whole.has_more, whole.next_cursor]).toEqual([undefined, undefined]);
    const seen: string[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const { body } = await ask(`${list}?limit=2${cursor && `&starting_after=${cursor}`}`);
      seen.push(...idsOf(body));
      const { data, has_more: hasMore, next_cursor: next, ...besides } = body;
      expect({ ...besides, data: whole.data }).toEqual(whole);
      expect([hasMore, next !== null]).toEqual(Array(2).fill(seen.length < whole.data.length));
      expect(data.length).toBe(hasMore ? 2 : whole.data.length % 2 || 2);
      cursor = body.next_cursor;
    }
    expect(seen).toEqual(idsOf(whole));
  });

  test.each(PAGED)("of %s is refused where it cannot be", async (list) => {
    for (const [query, words] of [
      ["limit=0", "limit: must be an integer from 1 to 100"],
      ["limit=101", "limit: must be an integer from 1 to 100"],
      [
        `limit=2&starting_after=${home.live.id}`,
        "starting_after: must be the next_cursor of an earlier page",
      ],
      [`limit=2&starting_after=open.${home.live.id}`, "starting_after: must be the next_cursor"],
      [`starting_after=${home.live.id}`, "starting_after: goes together with limit"],
    ] as const) {
      const { status, code, body } = await ask(`${list}?${query}`);
      expect([query, status, code, body.error.message]).toEqual([
        ...[query, 400, "validation_failed"],
        expect.stringContaining(words),
      ]);
    }
  });

  test("of people goes on though the last of the one before was removed since", async () => {
    const add = async (name: string) => {
      const email = `${name}-${crowded.id}@example.com`;
      const person = { organisation_id: crowded.id, email, password: PASSWORD, role: "viewer" } as const;
      return must(await createUser(service.ctx, MACHINE, person));
    };
    const [gone, last] = [await add("gone"), await add("last")];
    const { body: whole } = await ask("users");
    const { body: page } = await ask(`users?limit=${whole.data.length - 1}`);
    expect([page.next_cursor, page.has_more]).toEqual([gone.id, true]);
    must(await removeUser(service.ctx, MACHINE, { user_id: gone.id }));
    const { body: rest } = await ask(`users?limit=2&starting_after=${page.next_cursor}`);
    expect([idsOf(rest), rest.has_more]).toEqual([[last.id], false]);
  });

  test("of policies has the versions of a name newest first, an agent's own among them", async () => {
    const own = await service.organisation();
    const rules = { bands: [{ minScore: 0, outcome: "escalate" }] };
    for (const [name, more] of [
      ["b", {}],
      ["a", {}],
      ["b", { agent_id: own.live.id }],
      ["a", {}],
      ["b", {}],
      ["b", { agent_id: own.live.id }],
    ] as const)
      await own.addPolicy(rules, { name, ...more });
    const as = own.people.viewer.as;
    const { body: whole } = await service.get("/v1/console/policies", { as });
    const said = ({ name, version, agent_id }: Json) =>
      `${name} ${version}${agent_id ? " of the agent" : ""}`;
    expect(whole.data.map(said)).toEqual([
      ...["a 2", "a 1"],
      ...["b 2 of the agent", "b 2", "b 1 of the agent", "b 1"],
    ]);
    for (const after of whole.data.slice(0, -1)) {
      const query = `limit=100&starting_after=${after.id}`;
      const { body } = await service.get(`/v1/console/policies?${query}`, { as });
      expect(body.data).toEqual(whole.data.slice(whole.data.indexOf(after) + 1));
    }
  });

  test("of escalations goes on where the one before ended, though those were resolved since", async () => {
    const { body: whole } = await ask("escalations");
    const [first, second, third] = idsOf(whole);
    const { body: page } = await ask("escalations?limit=2");
    expect(idsOf(page)).toEqual([first!, second!]);
    for (const id of [first, second]) {
      const decided = { decision: "refund" };
      await service.post(`/v1/console/escalations/${id}/resolve`, decided, { as: crowded.people.owner.as });
    }
    const { body: rest } = await ask(`escalations?limit=3&starting_after=${page.next_cursor}`);
    // Of those that are resolved, the last comes first.
    expect(idsOf(rest)).toEqual([third!, second!, first!]);
    const { body: resolved } = await ask(`escalations?limit=1&starting_after=resolved.${second}`);
    expect([idsOf(resolved), resolved.has_more]).toEqual([[first!], false]);
    expect(
      (
        await service.get(`/v1/console/escalations?limit=2&starting_after=${page.next_cursor}`, {
          as: home.people.owner.as,
        })
      ).code,
    ).toBe("validation_failed");
  });
});
