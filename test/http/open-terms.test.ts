import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { benchSchemas } from "../../src/resources/bench-schemas.ts";
import { setAgentStatus } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createSchema } from "../../src/services/admin/schemas.ts";
import { createSession, revokeSession } from "../../src/services/admin/sessions.ts";
import { createVerifier } from "../../src/services/admin/verifiers.ts";
import type { Reply } from "../support/client.ts";
import { must, type TestAgent, type TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** What an open names: agents and their sessions, policies, verifiers, schemas (docs/policies, "Which policy a warrant gets"; docs/sessions, "Spend sessions"). */

let service: ShellService;
let home: TestOrganisation;
let other: TestOrganisation;
beforeAll(async () => {
  service = startTestShell();
  other = await service.organisation();
});
afterAll(() => service?.close());

const HOUR_MS = 3_600_000;
const open = (overrides: object, as = home.live.as, key?: string): Promise<Reply> =>
  service.post("/v1/warrants", service.body(overrides), { as, ...(key !== undefined && { key }) });

/** Each open must be refused as it says, and move nothing. */
async function refusesEach(
  scenarios: readonly (readonly [overrides: object, as: TestAgent["as"], status: number, code: string])[],
): Promise<void> {
  for (const [overrides, as, status, code] of scenarios)
    await service.refuses(home, [status, code], () => open(overrides, as));
}

test("an agent is named by its own key, or by a person; an unknown agent is 404", async () => {
  home = await service.organisation();
  const strict = await home.addAgent({ must_be_named: true });
  const { operator } = home.people;
  await refusesEach([
    [{ agent_id: "agt_none" }, home.live.as, 404, "agent_not_found"],
    [{ agent_id: other.live.id }, home.live.as, 404, "agent_not_found"],
    [{ agent_id: home.sandbox.id }, home.live.as, 404, "agent_not_found"],
    [{ agent_id: home.sandbox.id }, operator.as, 404, "agent_not_found"],
    [{ agent_id: strict.id }, home.live.as, 403, "agent_key_mismatch"],
    [{}, strict.as, 403, "agent_id_required"],
  ]);
  const opened: readonly [object, TestAgent["as"], string | null][] = [
    [{ agent_id: home.live.id }, home.live.as, home.live.id],
    [{}, home.live.as, null],
    [{ agent_id: strict.id }, strict.as, strict.id],
    [{ agent_id: strict.id }, operator.as, strict.id],
    [{ agent_id: home.sandbox.id }, home.sandbox.as, home.sandbox.id],
  ];
  for (const [overrides, as, agentId] of opened) {
    const reply = await open(overrides, as);
    expect([reply.status, reply.body.agent_id]).toEqual([201, agentId]);
  }
});

test("a paused or killed agent opens nothing, by whoever names it; its key still reads", async () => {
  home = await service.organisation();
  const agent = await home.addAgent();
  for (const status of ["paused", "killed"] as const) {
    must(await setAgentStatus(service.ctx, MACHINE, { agent_id: agent.id, status }));
    await refusesEach([
      [{ agent_id: agent.id }, agent.as, 403, "agent_not_active"],
      [{}, agent.as, 403, "agent_not_active"],
      [{ agent_id: agent.id }, home.people.owner.as, 403, "agent_not_active"],
    ]);
    expect((await service.get("/v1/warrants", { as: agent.as })).status).toBe(200);
  }
  must(await setAgentStatus(service.ctx, MACHINE, { agent_id: agent.id, status: "active" }));
  expect((await open({ agent_id: agent.id }, agent.as)).status).toBe(201);
});

test("a spend session's limits, each with its code and a message with the figures", async () => {
  home = await service.organisation();
  const agent = await home.addAgent();
  const named = { agent_id: agent.id };
  const session = (input: object) =>
    createSession(service.ctx, MACHINE, { agent_id: agent.id, amount_ceiling: "1000", ...input }).then(must);

  await session({ amount_ceiling: "250", warrant_limit: 2 });
  expect((await open({ ...named, amount: "200" }, agent.as)).status).toBe(201);
  const ceiling = await service.refuses(home, [403, "session_ceiling_exceeded"], () =>
    open({ ...named, amount: "51" }, agent.as),
  );
  for (const sum of ["250", "200", "51"]) expect(ceiling.body.error.message).toContain(sum);
  expect((await open({ ...named, amount: "50" }, agent.as)).status).toBe(201);
  await refusesEach([
    [{ ...named, amount: "1" }, agent.as, 403, "session_warrant_limit_reached"],
    [{ ...named, amount: "1" }, home.people.operator.as, 403, "session_warrant_limit_reached"],
  ]);
  // Without the agent's name no session applies.
  expect((await open({ amount: "1" }, agent.as)).status).toBe(201);

  await session({ expires_at: service.timeIn(HOUR_MS) });
  service.clock.now += HOUR_MS;
  const later = { ...named, deadline: service.timeIn(HOUR_MS) };
  await refusesEach([[later, agent.as, 403, "session_expired"]]);
  const { id } = await session({});
  must(await revokeSession(service.ctx, MACHINE, { session_id: id }));
  await refusesEach([[later, agent.as, 403, "session_revoked"]]);

  await session({ failure_budget: 1 });
  const failing = { ...later, spec: { clauses: [{ kind: "http.status", equals: 500 }] } };
  const { body } = await open(failing, agent.as);
  const source_url = "http://source.example/";
  expect(
    (await service.post(`/v1/warrants/${body.id}/verify`, { source_url }, { as: agent.as })).status,
  ).toBe(200);
  await refusesEach([[later, agent.as, 403, "session_failure_budget_spent"]]);
  await session({});
  await refusesEach([[{ ...later, asset: "EUR" }, agent.as, 403, "session_ceiling_exceeded"]]);
  expect((await open(later, agent.as)).status).toBe(201);
  service.clock.now -= HOUR_MS;
});

const band = (outcome: string, more: object = {}) => ({ bands: [{ minScore: 0, outcome }], ...more });

test("the policy is the agent's newest, else the organisation's, else the built-in one; and it is pinned", async () => {
  home = await service.organisation();
  const agent = await home.addAgent();
  const named = { agent_id: agent.id };
  const ran = async (overrides: object): Promise<unknown> => {
    const { body } = await open(overrides, agent.as);
    return [body.policy_id, body.policy_version];
  };
  expect(await ran(named)).toEqual([null, null]);
  const first = await home.addPolicy(band("refund"), { name: "house" });
  const pinned = await service.opened(home, {});
  expect([pinned.policy_id, pinned.policy_version]).toEqual([first.id, 1]);
  const second = await home.addPolicy(band("escalate"), { name: "house" });
  expect(await ran(named)).toEqual([second.id, 2]);
  const own = await home.addPolicy(band("escalate"), { name: "house", agent_id: agent.id });
  expect([own.version, await ran(named), await ran({})]).toEqual([1, [own.id, 1], [second.id, 2]]);
  const newest = await home.addPolicy(band("refund"), { name: "other", agent_id: agent.id });
  expect(await ran(named)).toEqual([newest.id, 1]);

  // A warrant keeps the policy version that it was opened under.
  const reply = await service.post(
    `/v1/warrants/${pinned.id}/verify`,
    { source_url: "http://source.example/" },
    { as: home.live.as },
  );
  expect(reply.body).toMatchObject({ state: "refunded", policy_id: first.id, policy_version: 1 });
});

test("a policy by id: a person names any version, a key its newest, and its own agent's where it has one", async () => {
  home = await service.organisation();
  const agent = await home.addAgent();
  const rival = await home.addAgent();
  const old = await home.addPolicy(band("refund"), { name: "house" });
  const house = await home.addPolicy(band("refund"), { name: "house" });
  const spare = await home.addPolicy(band("escalate"), { name: "spare" });
  const rivals = await home.addPolicy(band("release"), { name: "rival", agent_id: rival.id });
  const foreign = await other.addPolicy(band("release"));
  const { operator } = home.people;
  await refusesEach([
    [{ policy_id: "pol_none" }, agent.as, 404, "policy_not_found"],
    [{ policy_id: foreign.id }, agent.as, 404, "policy_not_found"],
    [{ policy_id: foreign.id }, operator.as, 404, "policy_not_found"],
    [{ policy_id: old.id }, agent.as, 403, "policy_not_allowed"],
    [{ policy_id: rivals.id }, agent.as, 403, "policy_not_allowed"],
    [{ policy_id: rivals.id, agent_id: agent.id }, agent.as, 403, "policy_not_allowed"],
  ]);
  for (const [policy, as] of [
    [house, agent.as],
    [spare, agent.as],
    [old, operator.as],
    [house, operator.as],
  ] as const) {
    const reply = await open({ policy_id: policy.id, agent_id: agent.id }, as);
    expect([reply.status, reply.body?.policy_id, reply.body?.policy_version]).toEqual([
      201,
      policy.id,
      policy.version,
    ]);
  }
  const own = await home.addPolicy(band("escalate"), { name: "own", agent_id: agent.id });
  await refusesEach([
    [{ policy_id: house.id, agent_id: agent.id }, agent.as, 403, "policy_not_allowed"],
    [{ policy_id: house.id }, agent.as, 403, "policy_not_allowed"],
  ]);
  expect((await open({ policy_id: own.id, agent_id: agent.id }, agent.as)).body.policy_id).toBe(own.id);
});

test("a policy's maxAmount, in USDC alone", async () => {
  home = await service.organisation();
  const policy = await home.addPolicy(band("release", { maxAmount: "100" }));
  await refusesEach([
    [{ amount: "101" }, home.live.as, 403, "policy_max_amount_exceeded"],
    [{ amount: "101", policy_id: policy.id }, home.people.owner.as, 403, "policy_max_amount_exceeded"],
    [{ amount: "1", asset: "EUR" }, home.live.as, 403, "policy_max_amount_exceeded"],
  ]);
  expect((await open({ amount: "0100" })).body).toMatchObject({ amount: "100", policy_id: policy.id });
});

test("a saved verifier adds its clause to the spec, before it is hashed", async () => {
  home = await service.organisation();
  const organisation = { organisation_id: home.id };
  must(
    await createSchema(service.ctx, MACHINE, { ...organisation, name: "report", schema: { type: "object" } }),
  );
  const save = (type: "json.schema" | "http.status", config: object, organisation_id = home.id) =>
    createVerifier(service.ctx, MACHINE, { organisation_id, type, name: "saved", config }).then(must);
  const verifier = await save("json.schema", { schema: "report" });
  const foreign = await save("http.status", { equals: 200 }, other.id);
  const status = { kind: "http.status", equals: 200 };
  await refusesEach([
    [{ verifier_id: "vrf_none" }, home.live.as, 404, "verifier_not_found"],
    [{ verifier_id: foreign.id }, home.live.as, 404, "verifier_not_found"],
    [
      { verifier_id: verifier.id, spec: { clauses: Array(64).fill(status) } },
      home.live.as,
      400,
      "validation_failed",
    ],
  ]);
  const added = await open({ verifier_id: verifier.id });
  const clauses = [status, { kind: "json.schema", schema: "report" }];
  expect(added.body).toMatchObject({ verifier_id: verifier.id, spec: { clauses } });
  const written = await open({ spec: { clauses } });
  expect(written.body.spec_hash).toBe(added.body.spec_hash);
  expect(written.body.verifier_id).toBeNull();
  // Schemas of the organisation exist in both modes, and their hashes are in the opening payload.
  const sandbox = await open({ spec: { clauses } }, home.sandbox.as);
  expect(sandbox.status).toBe(201);
  const [entry] = service.ctx.reader.trace.of(added.body.id);
  expect(Object.keys(JSON.parse(entry!.payload).schema_hashes)).toEqual(["report"]);
});

describe("a built-in schema", () => {
  beforeEach(async () => {
    home = await service.organisation();
  });
  const asking = (...schemas: readonly string[]) => ({
    spec: { clauses: schemas.map((schema) => ({ kind: "json.schema", schema })) },
  });
  const saved = () =>
    service.ctx.reader.schemas.named(home.id, Object.keys(benchSchemas)).map(({ name }) => name);
  const hashesOf = ({ body }: Reply): unknown =>
    JSON.parse(service.ctx.reader.trace.of(body.id)[0]!.payload).schema_hashes;
  const verify = async (opened: Reply): Promise<unknown> => {
    const path = `/v1/warrants/${opened.body.id}/verify`;
    return (await service.post(path, { source_url: "https://a.example/" }, { as: home.live.as })).body.state;
  };

  test("becomes the organisation's own with the first warrant that names it", async () => {
    const first = await open(asking("object", "array", "object"));
    expect([first.status, hashesOf(first)]).toEqual([
      201,
      { object: benchSchemas.object!.hash, array: benchSchemas.array!.hash },
    ]);
    expect(saved()).toEqual(["array", "object"]);
    expect([await verify(first), await verify(await open(asking("object")))]).toEqual([
      "escalated",
      "released",
    ]);
    expect(saved()).toEqual(["array", "object"]);
    const own = { organisation_id: home.id, name: "object", schema: { type: "string" } };
    expect(await createSchema(service.ctx, MACHINE, own)).toMatchObject({ refused: "already_exists" });
  });

  test("is not that of an organisation which has one of that name", async () => {
    const own = { organisation_id: home.id, name: "object", schema: { type: "string" } };
    const { schema_hash } = must(await createSchema(service.ctx, MACHINE, own));
    const opened = await open(asking("object"));
    expect([hashesOf(opened), saved(), await verify(opened)]).toEqual([
      { object: schema_hash },
      ["object"],
      "escalated",
    ]);
  });

  test("is saved once by warrants that are opened at once, and not where one is refused", async () => {
    expect((await open({ ...asking("array"), amount: "9999999999" })).code).toBe("insufficient_funds");
    expect(saved()).toEqual([]);
    const opened = await Promise.all([open(asking("object")), open(asking("object"))]);
    expect([opened.map(({ status }) => status), saved()]).toEqual([[201, 201], ["object"]]);
  });

  test("becomes its own with a verifier too, which a warrant names", async () => {
    const verifier = must(
      await createVerifier(service.ctx, MACHINE, {
        ...{ organisation_id: home.id, type: "json.schema", name: "v", config: { schema: "object" } },
      }),
    );
    expect(saved()).toEqual(["object"]);
    // Who saved it by a verifier is in the audit log; who saved it by a warrant is in the trace.
    const made = () =>
      service.ctx.reader.auditEntries
        .list(home.id, null, 1_000)
        .filter(({ action }) => action === "schema.created")
        .map(({ actor, after }) => [actor.kind, after]);
    expect(made()).toEqual([
      ["machine", expect.objectContaining({ name: "object", schema_hash: benchSchemas.object!.hash })],
    ]);
    await open(asking("array"));
    expect([saved(), made().length]).toEqual([["array", "object"], 1]);
    const opened = await open({ verifier_id: verifier.id });
    expect([hashesOf(opened), await verify(opened)]).toEqual([
      { object: benchSchemas.object!.hash },
      "released",
    ]);
  });
});
