import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { setAgentStatus } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createPolicy } from "../../src/services/admin/policies.ts";
import { createSession } from "../../src/services/admin/sessions.ts";
import type { Json, Reply } from "../support/client.ts";
import { must, type TestAgent, type TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** What an API key may do (docs/concepts, "Sandbox and live"; docs/policies, "Which policy a warrant gets"; docs/people, "Agents"). */

let service: ShellService;
let home: TestOrganisation;
beforeAll(() => {
  service = startTestShell();
});
afterAll(() => service?.close());
beforeEach(async () => {
  home = await service.organisation();
});

const source_url = "http://source.example/";
const open = (overrides: object, as: TestAgent["as"], key?: string): Promise<Reply> =>
  service.post("/v1/warrants", service.body(overrides), { as, ...(key !== undefined && { key }) });
const verify = (id: string, as: TestAgent["as"]) =>
  service.post(`/v1/warrants/${id}/verify`, { source_url }, { as });

test("an API key has its agent's mode: it moves that mode's money, and everything in the other mode is 404", async () => {
  const { live, sandbox } = home;
  const all = { available: 1_000_000n, held: 0n, paid: 0n };
  const one = { available: 999_900n, held: 100n, paid: 0n };
  const inSandbox = await service.opened(home, { agent_id: sandbox.id }, { as: sandbox.as, key: "same" });
  expect([service.balance(home), service.balance(home, "sandbox")]).toEqual([all, one]);
  // The same Idempotency-Key is another key in the other mode.
  const inLive = await service.opened(home, { agent_id: live.id }, { as: live.as, key: "same" });
  expect([service.balance(home), service.balance(home, "sandbox")]).toEqual([one, one]);

  for (const [mine, theirs, agent] of [
    [inSandbox, inLive, sandbox],
    [inLive, inSandbox, live],
  ] as const) {
    const gone = [404, "warrant_not_found"] as const;
    await service.refuses(home, gone, () => service.get(`/v1/warrants/${theirs.id}`, { as: agent.as }));
    await service.refuses(home, gone, () => service.get(`/v1/warrants/${theirs.id}/trace`, { as: agent.as }));
    await service.refuses(home, gone, () => verify(theirs.id, agent.as));
    const { body } = await service.get("/v1/warrants", { as: agent.as });
    expect(body.data.map(({ id }: Json) => id)).toEqual([mine.id]);
  }
  expect((await verify(inSandbox.id, sandbox.as)).body.state).toBe("released");
  expect(service.balance(home)).toEqual(one);
});

test("a key opens for its own agent only, and charges no other's session", async () => {
  const [first, second] = [await home.addAgent(), await home.addAgent()];
  for (const { id } of [first, second])
    must(await createSession(service.ctx, MACHINE, { agent_id: id, amount_ceiling: "100" }));
  const spent = ({ id }: TestAgent) =>
    service.ctx.reader.agents.liveSession(id, service.clock.now)?.amountSpent;
  await service.refuses(home, [403, "agent_key_mismatch"], () => open({ agent_id: second.id }, first.as));
  await service.opened(home, { agent_id: first.id }, { as: first.as });
  expect([spent(first), spent(second)]).toEqual([100n, 0n]);
  // An open without agent_id is charged to no session, even if the key's agent has one.
  await service.opened(home, {}, { as: first.as });
  expect([spent(first), spent(second)]).toEqual([100n, 0n]);
});

test("a key verifies its own agent's warrants and those of no agent, whoever opened them", async () => {
  const [first, second] = [await home.addAgent(), await home.addAgent()];
  const byPerson = await service.opened(home, { agent_id: first.id }, { as: home.people.operator.as });
  await service.refuses(home, [403, "agent_key_mismatch"], () => verify(byPerson.id, second.as));
  // It may read warrants that it may not verify: all warrants of a mode belong to the organisation.
  expect((await service.get(`/v1/warrants/${byPerson.id}`, { as: second.as })).status).toBe(200);
  expect((await verify(byPerson.id, first.as)).body.state).toBe("released");
  const nobodys = await service.opened(home, {}, { as: first.as });
  expect((await verify(nobodys.id, second.as)).body.state).toBe("released");
});

test("the keys of an agent that must be named must send agent_id on an open, but not on a verify", async () => {
  const strict = await home.addAgent({ must_be_named: true });
  const other = await home.addAgent();
  await service.refuses(
    home,
    [403, "agent_id_required", `agent_id: this key's agent must be named; send ${strict.id}`],
    () => open({}, strict.as),
  );
  await service.refuses(home, [403, "agent_key_mismatch"], () => open({ agent_id: other.id }, strict.as));
  const mine = await service.opened(home, { agent_id: strict.id }, { as: strict.as });
  expect((await verify(mine.id, strict.as)).body.state).toBe("released");
  // The setting applies only to the keys of this agent. Other callers need not name it.
  await service.opened(home, {}, { as: other.as });
  await service.opened(home, {}, { as: home.people.operator.as });
});

test("which policies a key may name: the newest version of a name, and its agent's own where that has one", async () => {
  const agent = await home.addAgent();
  const rules = { bands: [{ minScore: 0, outcome: "escalate" }] };
  const save = async (name: string, agent_id?: string) =>
    must(
      await createPolicy(service.ctx, MACHINE, {
        organisation_id: home.id,
        name,
        rules,
        ...(agent_id !== undefined && { agent_id }),
      }),
    ).id;
  const names = async (policy_id: string, expected: null | "policy_not_allowed") => {
    if (expected) return service.refuses(home, [403, expected], () => open({ policy_id }, agent.as));
    const reply = await open({ policy_id }, agent.as);
    expect([reply.status, reply.body?.policy_id]).toEqual([201, policy_id]);
  };
  const [houseOld, houseNew] = [await save("house"), await save("house")];
  const sandboxAgents = await save("house", home.sandbox.id);
  await names(houseOld, "policy_not_allowed");
  await names(sandboxAgents, "policy_not_allowed");
  await names(houseNew, null);

  const [ownOld, ownNew, ownOther] = [
    await save("house", agent.id),
    await save("house", agent.id),
    await save("other", agent.id),
  ];
  await names(houseNew, "policy_not_allowed");
  await names(ownOld, "policy_not_allowed");
  await names(ownNew, null);
  await names(ownOther, null);
  await save("house", agent.id);
  await names(ownNew, "policy_not_allowed");
  // A person may name any of them.
  for (const policy_id of [houseOld, ownOld, sandboxAgents])
    expect((await open({ policy_id }, home.people.operator.as)).body.policy_id).toBe(policy_id);
});

test("a paused agent's keys open nothing and still verify and read; those of a killed agent only read", async () => {
  const agent = await home.addAgent();
  const [first, second] = [await service.opened(home), await service.opened(home)];
  const set = async (status: "paused" | "killed") =>
    must(await setAgentStatus(service.ctx, MACHINE, { agent_id: agent.id, status }));
  const opensNothing = async () => {
    for (const overrides of [{}, { agent_id: agent.id }])
      await service.refuses(home, [403, "agent_not_active"], () => open(overrides, agent.as));
  };
  await set("paused");
  await opensNothing();
  expect((await verify(first.id, agent.as)).body.state).toBe("released");
  await set("killed");
  await opensNothing();
  await service.refuses(home, [403, "agent_not_active"], () => verify(second.id, agent.as));
  for (const path of ["/v1/warrants", `/v1/warrants/${second.id}`, `/v1/warrants/${second.id}/trace`])
    expect((await service.get(path, { as: agent.as })).status).toBe(200);
});

test("no key settles, decides an escalation, or reads the console", async () => {
  const { id } = await service.opened(home, { spec: { clauses: [{ kind: "http.status", equals: 500 }] } });
  await verify(id, home.live.as);
  const refused = [403, "user_session_required"] as const;
  const { as } = home.live;
  for (const [path, body] of [
    [`/v1/warrants/${id}/release`, undefined],
    [`/v1/warrants/${id}/partial`, { released_bps: 1 }],
    [`/v1/warrants/${id}/refund`, undefined],
    [`/v1/console/escalations/${id}/resolve`, { decision: "release" }],
  ] as const)
    await service.refuses(home, refused, () => service.post(path, body, { as }));
  for (const list of ["agents", "policies", "verifiers", "escalations", "keys"])
    await service.refuses(home, refused, () => service.get(`/v1/console/${list}`, { as }));
});
