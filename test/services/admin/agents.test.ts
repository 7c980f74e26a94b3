import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { AgentStatus } from "../../../src/core/agent.ts";
import { hashSecret, looksLikeApiKey } from "../../../src/core/api-key.ts";
import type { Mode, PersonCaller } from "../../../src/core/roles.ts";
import {
  type AgentInput,
  createAgent,
  listAgents,
  setAgentStatus,
  showAgent,
  updateAgent,
} from "../../../src/services/admin/agents.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { createKey, revokeKey } from "../../../src/services/admin/keys.ts";
import { createSession } from "../../../src/services/admin/sessions.ts";
import { createTestContext, TEST_NOW, type TestContext } from "../../support/context.ts";
import { type Expected, expectRefused } from "../../support/refused.ts";
import { createCaller, createStage, must, open, type Stage, warrantIn } from "../../support/stage.ts";

let ctx: TestContext;
let stage: Stage;

beforeAll(async () => {
  ctx = createTestContext();
  stage = await createStage(ctx, { mode: "sandbox" });
});
afterAll(() => ctx.close());

const input = (change: Partial<AgentInput> = {}): AgentInput => ({
  organisation_id: stage.organisationId,
  mode: "sandbox",
  name: "buyer",
  ...change,
});
const newAgent = async (change: Partial<AgentInput> = {}) =>
  must(await createAgent(ctx, MACHINE, input(change)));
const DID_KEY = "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK";
const elsewhere = (): PersonCaller => ({ ...stage.owner, organisationId: "org_other" });
const inLive = (): PersonCaller => ({ ...stage.owner, mode: "live" });

describe("createAgent", () => {
  test("creates it active, with an identity at this instance", async () => {
    const agent = await newAgent();
    expect(agent).toEqual({
      id: agent.id,
      object: "agent",
      mode: "sandbox",
      name: "buyer",
      identity: `did:web:localhost%3A8080:agents:${agent.id}`,
      status: "active",
      failure_budget: 3,
      failure_count: 0,
      must_be_named: false,
      created_at: new Date(TEST_NOW).toISOString(),
      policy: null,
      session: null,
      warrants: { total: 0, by_state: {} },
    });
    expect(ctx.reader.agents.get(agent.id)).toMatchObject({ mode: "sandbox", mustBeNamed: false });
  });

  test("has the values that were given", async () => {
    const agent = await newAgent({ failure_budget: 1_000_000, must_be_named: true, mode: "live" });
    expect(ctx.reader.agents.get(agent.id)).toMatchObject({
      mode: "live",
      failureBudget: 1_000_000,
      mustBeNamed: true,
    });
  });

  test("has the identity of the key that it brings", async () => {
    const agent = await newAgent({ did_key: DID_KEY });
    expect(agent.identity).toBe(DID_KEY);
    expect(ctx.reader.agents.get(agent.id)?.identity).toBe(DID_KEY);
  });

  const REFUSED: readonly (readonly [string, Partial<AgentInput>, Expected])[] = [
    ["a did:key with a digit less", { did_key: DID_KEY.slice(0, -1) }, ["validation_failed", "did_key: "]],
    ["a did:web", { did_key: "did:web:example.com" }, ["validation_failed", "did_key: "]],
    ["an empty did:key", { did_key: "" }, ["validation_failed", "did_key: "]],
    [
      "an unknown mode",
      { mode: "test" as Mode },
      ["validation_failed", "mode: must be one of sandbox, live"],
    ],
    ["an empty name", { name: "" }, ["validation_failed", "name: "]],
    ["a budget of 0", { failure_budget: 0 }, ["validation_failed", "failure_budget: "]],
    ["a budget above 1,000,000", { failure_budget: 1_000_001 }, ["validation_failed", "failure_budget: "]],
    ["a budget of 1.5", { failure_budget: 1.5 }, ["validation_failed", "failure_budget: "]],
    ["a budget that is no number", { failure_budget: Number.NaN }, ["validation_failed", "failure_budget: "]],
    ["an unknown organisation", { organisation_id: "org_none" }, ["organisation_not_found", ""]],
  ];
  for (const [what, change, expected] of REFUSED) {
    test(`refuses ${what}: no agent`, () =>
      expectRefused(ctx, () => createAgent(ctx, MACHINE, input(change)), expected));
  }

  test("an operator may not, an admin may, and an admin of another organisation finds no agent", async () => {
    await expectRefused(ctx, () => createAgent(ctx, stage.operator, input()), ["insufficient_role", ""]);
    await expectRefused(ctx, () => createAgent(ctx, elsewhere(), input()), ["organisation_not_found", ""]);
    expect(must(await createAgent(ctx, stage.admin, input())).status).toBe("active");
  });
});

describe("updateAgent", () => {
  const update = (agent_id: string, change: object, authority: Parameters<typeof updateAgent>[1] = MACHINE) =>
    updateAgent(ctx, authority, { agent_id, ...change });

  test("changes what is given, and nothing else, for the next request on", async () => {
    const caller = await createCaller(stage);
    const before = must(await showAgent(ctx, MACHINE, { agent_id: caller.agentId }));
    const named = must(await update(caller.agentId, { must_be_named: true }, stage.admin));
    expect(named).toEqual({ ...before, must_be_named: true });
    expect(await open(stage, caller)).toMatchObject({ refused: "agent_id_required" });
    const rest = must(await update(caller.agentId, { name: "another", failure_budget: 9 }));
    expect(rest).toEqual({ ...before, name: "another", failure_budget: 9, must_be_named: true });
    expect(must(await showAgent(ctx, MACHINE, { agent_id: caller.agentId }))).toEqual(rest);
    must(await update(caller.agentId, { must_be_named: false }));
    warrantIn(await open(stage, caller));
  });

  test("pauses it where its failures have reached the new budget already; a larger one starts nobody again", async () => {
    const { agentId } = await createCaller(stage, { failure_budget: 5 });
    const stored = ctx.reader.agents.get(agentId)!;
    await ctx.store.execute({
      scope: stored,
      needs: { agent: agentId },
      decide: ({ agent }) => ({
        answer: true,
        change: { put: [{ kind: "agent", before: agent, row: { ...agent!, failureCount: 2 } }] },
      }),
    });
    expect(must(await update(agentId, { failure_budget: 3 })).status).toBe("active");
    expect(must(await update(agentId, { failure_budget: 2 }))).toMatchObject({
      status: "paused",
      failure_count: 2,
    });
    expect(must(await update(agentId, { failure_budget: 50 })).status).toBe("paused");
  });

  test("is refused without a change, and for others than admins of its organisation and mode", async () => {
    const { id } = await newAgent();
    const refusals: readonly (readonly [object, Parameters<typeof updateAgent>[1], Expected])[] = [
      [{}, MACHINE, ["validation_failed", "Give what is to change"]],
      [{ name: "" }, MACHINE, ["validation_failed", "name: "]],
      [{ failure_budget: 0 }, MACHINE, ["validation_failed", "failure_budget: "]],
      [{ failure_budget: 1_000_001 }, MACHINE, ["validation_failed", "failure_budget: "]],
      [{ name: "x" }, stage.operator, ["insufficient_role", ""]],
      [{ name: "x" }, elsewhere(), ["agent_not_found", ""]],
      [{ name: "x" }, inLive(), ["agent_not_found", ""]],
    ];
    for (const [change, authority, expected] of refusals)
      await expectRefused(ctx, () => update(id, change, authority), expected);
  });
});

describe("setAgentStatus", () => {
  const set = (agentId: string, status: AgentStatus, authority: PersonCaller | typeof MACHINE = MACHINE) =>
    setAgentStatus(ctx, authority, { agent_id: agentId, status });

  test("killing freezes its held warrants, making it active again thaws them, and no money moves", async () => {
    const caller = await createCaller(stage);
    const warrant = warrantIn(await open(stage, caller, { agent_id: caller.agentId }));
    const balances = ctx.reader.balances.list(caller);

    const killed = must(await set(caller.agentId, "killed"));
    expect(killed.status).toBe("killed");
    expect(killed.warrants).toEqual({ total: 1, by_state: { held: 0, frozen: 1 } });
    expect(ctx.reader.warrants.get(caller, warrant.id)?.state).toBe("frozen");

    const paused = must(await set(caller.agentId, "paused"));
    expect([paused.status, paused.warrants.by_state.frozen]).toEqual(["paused", 1]);

    const active = must(await set(caller.agentId, "active"));
    expect([active.status, active.warrants.by_state.held]).toEqual(["active", 1]);
    expect(ctx.reader.balances.list(caller)).toEqual(balances);
  });

  test("making it active again sets the failures to zero", async () => {
    const { id } = await newAgent();
    await ctx.store.execute({
      scope: ctx.reader.agents.get(id)!,
      needs: { agent: id },
      decide: ({ agent }) => ({
        answer: null,
        change: {
          put: [{ kind: "agent", before: agent, row: { ...agent!, failureCount: 3, status: "paused" } }],
        },
      }),
    });
    expect(must(await set(id, "paused")).failure_count).toBe(3);
    expect(must(await set(id, "active")).failure_count).toBe(0);
  });

  test("refuses unknown agents and statuses, and changes nothing", async () => {
    const { id } = await newAgent();
    const cases: readonly (readonly [() => Promise<unknown>, Expected])[] = [
      [() => set(id, "asleep" as AgentStatus), ["validation_failed", "status: must be one of active"]],
      [() => set("agt_none", "paused"), ["agent_not_found", "There is no agent agt_none"]],
      [() => set(id, "killed", stage.operator), ["insufficient_role", ""]],
      [() => set(id, "paused", elsewhere()), ["agent_not_found", ""]],
      [() => set(id, "paused", inLive()), ["agent_not_found", ""]],
    ];
    for (const [verb, expected] of cases) await expectRefused(ctx, verb, expected);
    expect(ctx.reader.agents.get(id)?.status).toBe("active");
    expect(must(await set(id, "paused", stage.operator)).status).toBe("paused");
  });

  test("an operator cannot change a killed agent to paused, since a paused one may do more", async () => {
    const { id } = await newAgent();
    must(await set(id, "killed"));
    await expectRefused(ctx, () => set(id, "paused", stage.operator), ["insufficient_role", ""]);
    expect(ctx.reader.agents.get(id)?.status).toBe("killed");
    expect(must(await set(id, "paused", stage.admin)).status).toBe("paused");
  });
});

describe("listAgents and showAgent", () => {
  test("show the agents of one organisation and mode", async () => {
    const other = await createStage(ctx, { mode: "sandbox" });
    const scope = { organisation_id: other.organisationId, mode: "sandbox" as const };
    expect(await listAgents(ctx, MACHINE, scope)).toEqual({ object: "list", data: [] });
    const first = must(await createAgent(ctx, MACHINE, { ...scope, name: "first" }));
    const second = must(await createAgent(ctx, MACHINE, { ...scope, name: "second" }));
    const live = must(await createAgent(ctx, MACHINE, { ...scope, mode: "live", name: "live" }));
    must(await createSession(ctx, MACHINE, { agent_id: first.id, amount_ceiling: "5" }));
    const shown = must(await showAgent(ctx, MACHINE, { agent_id: first.id }));
    expect(shown).toMatchObject({ ...first, session: { amount_ceiling: "5", amount_spent: "0" } });
    expect(must(await listAgents(ctx, MACHINE, scope)).data).toEqual([shown, second]);
    expect(must(await listAgents(ctx, MACHINE, { ...scope, mode: "live" })).data).toEqual([live]);

    const viewer: PersonCaller = { ...other.operator, role: "viewer" };
    expect(must(await listAgents(ctx, viewer, scope)).data).toEqual([shown, second]);
    expect(must(await listAgents(ctx, viewer, { ...scope, mode: "live" })).data).toEqual([]);
    expect(must(await showAgent(ctx, viewer, { agent_id: first.id }))).toEqual(shown);
  });

  test("refuse what does not exist for the caller", async () => {
    const { id } = await newAgent();
    const scope = { organisation_id: stage.organisationId, mode: "sandbox" as const };
    const cases: readonly (readonly [() => Promise<unknown>, Expected])[] = [
      [() => showAgent(ctx, MACHINE, { agent_id: "agt_none" }), ["agent_not_found", ""]],
      [() => showAgent(ctx, elsewhere(), { agent_id: id }), ["agent_not_found", ""]],
      [() => showAgent(ctx, inLive(), { agent_id: id }), ["agent_not_found", ""]],
      [() => listAgents(ctx, elsewhere(), scope), ["organisation_not_found", ""]],
      [
        () => listAgents(ctx, MACHINE, { ...scope, organisation_id: "org_none" }),
        ["organisation_not_found", ""],
      ],
      [
        () => listAgents(ctx, MACHINE, { ...scope, mode: "test" as Mode }),
        ["validation_failed", "mode: must be one of sandbox, live"],
      ],
    ];
    for (const [verb, expected] of cases) await expectRefused(ctx, verb, expected);
  });
});

describe("keys", () => {
  for (const [mode, prefix] of [
    ["sandbox", "hf_test_"],
    ["live", "hf_live_"],
  ] as const) {
    test(`of a ${mode} agent are ${prefix}…, and only the hash is kept`, async () => {
      const agent = await newAgent({ mode });
      const { secret, ...key } = must(await createKey(ctx, MACHINE, { agent_id: agent.id }));
      expect(secret).toStartWith(prefix);
      expect(looksLikeApiKey(secret)).toBeTrue();
      expect(key).toEqual({
        id: key.id,
        object: "api_key",
        agent_id: agent.id,
        mode,
        last_four: secret.slice(-4),
        created_at: new Date(TEST_NOW).toISOString(),
        expires_at: null,
        last_used_at: null,
        revoked_at: null,
      });
      expect(ctx.reader.apiKeys.byHash(hashSecret(secret))?.id).toBe(key.id);
      expect(ctx.ledger.bytes().includes(secret)).toBeFalse();
    });
  }

  test("revoking cannot be undone, and is done once", async () => {
    const agent = await newAgent();
    const { id } = must(await createKey(ctx, MACHINE, { agent_id: agent.id }));
    const first = must(await revokeKey(ctx, stage.admin, { key_id: id }));
    expect(first.revoked_at).toBe(new Date(TEST_NOW).toISOString());
    ctx.clock.now += 1_000;
    expect(must(await revokeKey(ctx, MACHINE, { key_id: id }))).toEqual(first);
    ctx.clock.now = TEST_NOW;
  });

  test("refuses unknown agents and keys, and writes nothing", async () => {
    const agent = await newAgent();
    const { id } = must(await createKey(ctx, MACHINE, { agent_id: agent.id }));
    const agent_id = agent.id;
    const cases: readonly (readonly [() => Promise<unknown>, Expected])[] = [
      [() => createKey(ctx, MACHINE, { agent_id: "agt_none" }), ["agent_not_found", ""]],
      [() => createKey(ctx, stage.operator, { agent_id }), ["insufficient_role", ""]],
      [() => createKey(ctx, elsewhere(), { agent_id }), ["agent_not_found", ""]],
      [() => createKey(ctx, inLive(), { agent_id }), ["agent_not_found", ""]],
      [() => revokeKey(ctx, MACHINE, { key_id: "key_none" }), ["api_key_not_found", ""]],
      [() => revokeKey(ctx, stage.operator, { key_id: id }), ["insufficient_role", ""]],
      [() => revokeKey(ctx, elsewhere(), { key_id: id }), ["api_key_not_found", ""]],
    ];
    for (const [verb, expected] of cases) await expectRefused(ctx, verb, expected);
    expect(ctx.reader.apiKeys.get(id)?.revokedAt).toBeNull();
  });
});
