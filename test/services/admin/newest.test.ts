import { afterEach, beforeEach, expect, test } from "bun:test";
import type { AgentStatus } from "../../../src/core/agent.ts";
import { createIds } from "../../../src/core/ids.ts";
import type { PersonCaller } from "../../../src/core/roles.ts";
import { setAgentStatus } from "../../../src/services/admin/agents.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { createPolicy } from "../../../src/services/admin/policies.ts";
import { createSession } from "../../../src/services/admin/sessions.ts";
import type { Context } from "../../../src/services/context.ts";
import { resolveEscalation } from "../../../src/services/warrants/resolve.ts";
import { createTestContext, TEST_NOW, type TestContext } from "../../support/context.ts";
import {
  codeOf,
  createCaller,
  createStage,
  idempotencyOf,
  must,
  open,
  SCRIPTED,
  type Stage,
  verify,
  warrantIn,
} from "../../support/stage.ts";
import { openTestStore, type TestStore } from "../../support/store.ts";

/**
 * Every command runs in a process of its own. The clock may be set back between two commands, and the command
 * that draws its id first may commit last. In any case the newest policy or session is the one that was saved
 * last.
 */

let ctx: TestContext;
let stage: Stage;
beforeEach(async () => {
  ctx = createTestContext(SCRIPTED);
  stage = await createStage(ctx);
});
let opened: TestStore[] = [];
afterEach(async () => {
  for (const store of opened) await store.close();
  opened = [];
  await ctx.close();
});

/** The same ledger, in a process that starts now. */
function nextProcess(): Context {
  const store = openTestStore(ctx.folder, { now: ctx.now });
  opened.push(store);
  return { ...ctx, store, newId: createIds(ctx.now, () => 2, store.newestIdTime) };
}

test("a policy saved after the clock was set back is in force", async () => {
  const save = (outcome: string) =>
    createPolicy(nextProcess(), MACHINE, {
      organisation_id: stage.organisationId,
      name: "rules",
      rules: { bands: [{ minScore: 0, outcome }] },
    });
  ctx.clock.now = TEST_NOW + 3_600_000;
  must(await save("release"));
  ctx.clock.now = TEST_NOW;
  expect(must(await save("refund")).version).toBe(2);
  expect(must(await save("escalate")).version).toBe(3);
  expect(warrantIn(await open(stage, stage.operator)).policy_version).toBe(3);
});

test("a session created after the clock was set back is the live one", async () => {
  const key = await createCaller(stage);
  const create = () =>
    createSession(nextProcess(), MACHINE, { agent_id: key.agentId, amount_ceiling: "100" });
  ctx.clock.now = TEST_NOW + 3_600_000;
  must(await create());
  ctx.clock.now = TEST_NOW;
  must(await create());
  expect(codeOf(await open(stage, key, { agent_id: key.agentId }))).toBe(201);
});

/**
 * The same ledger, in a process that has drawn its id already and saves it only later. So its id is older
 * than those of everything that is saved before it.
 */
function slowProcess(kind: Parameters<Context["newId"]>[0]): Context {
  const drawn = ctx.newId(kind);
  return { ...ctx, newId: (asked) => (asked === kind ? drawn : ctx.newId(asked)) };
}

test("of two sessions the one that is saved last is live, whichever made its id first", async () => {
  const key = await createCaller(stage);
  const session = { agent_id: key.agentId, amount_ceiling: "100" };
  const slow = slowProcess("spendSession");
  const first = must(await createSession(ctx, MACHINE, session));
  const last = must(await createSession(slow, MACHINE, session));
  expect(last.id < first.id).toBeTrue();
  const { agents } = ctx.reader;
  expect(agents.session(first.id)?.revokedAt).toBe(ctx.now());
  expect(agents.liveSession(key.agentId, ctx.now())?.id).toBe(last.id);
  expect(codeOf(await open(stage, key, { agent_id: key.agentId }))).toBe(201);
  expect(agents.session(last.id)).toMatchObject({ amountSpent: 100n, revokedAt: null });
  expect(agents.session(first.id)).toMatchObject({ amountSpent: 0n, warrantCount: 0 });

  const third = must(await createSession(ctx, MACHINE, session));
  expect(agents.session(last.id)?.revokedAt).toBe(ctx.now());
  expect(agents.liveSession(key.agentId, ctx.now())?.id).toBe(third.id);
});

for (const whose of ["the organisation's", "an agent's"] as const) {
  test(`of two versions of ${whose} policy the one that is saved last is in force, whichever drew its id first`, async () => {
    const key = await createCaller(stage);
    const owner = whose === "an agent's" ? { agent_id: key.agentId } : {};
    const save = (saving: Context, name: string) =>
      createPolicy(saving, MACHINE, {
        organisation_id: stage.organisationId,
        name,
        rules: { bands: [{ minScore: 0, outcome: "refund" }] },
        ...owner,
      });
    const slow = slowProcess("policy");
    const first = must(await save(ctx, "rules"));
    const last = must(await save(slow, "rules"));
    expect(last.id < first.id).toBeTrue();
    expect(last.version).toBe(2);
    const named = { agent_id: key.agentId };
    expect(warrantIn(await open(stage, key, named)).policy_id).toBe(last.id);
    expect(codeOf(await open(stage, key, { ...named, policy_id: last.id }))).toBe(201);
    expect(codeOf(await open(stage, key, { ...named, policy_id: first.id }))).toBe("policy_not_allowed");
    expect(must(await save(ctx, "rules")).version).toBe(3);

    const slower = slowProcess("policy");
    must(await save(ctx, "other"));
    const newest = must(await save(slower, "rules"));
    const { agents, policies } = ctx.reader;
    const inForce =
      whose === "an agent's" ? agents.ownPolicy(key.agentId) : policies.ofOrganisation(stage.organisationId);
    expect(inForce?.id).toBe(newest.id);
    const versions = policies.list(stage.organisationId).map(({ name, version }) => `${name} ${version}`);
    expect(versions).toEqual(["other 1", "rules 4", "rules 3", "rules 2", "rules 1"]);
  });
}

test("of two escalations of a warrant the unresolved one is decided, whichever drew its id first", async () => {
  must(
    await createPolicy(ctx, MACHINE, {
      organisation_id: stage.organisationId,
      name: "ask",
      rules: { bands: [{ minScore: 0, outcome: "escalate" }] },
    }),
  );
  const key = await createCaller(stage);
  const { id } = warrantIn(await open(stage, key));
  const set = async (status: AgentStatus) =>
    must(await setAgentStatus(ctx, MACHINE, { agent_id: key.agentId, status }));
  const waiting = () => ctx.reader.escalations.waitingOf(id);
  const slow = slowProcess("escalation");
  await set("killed");
  const first = waiting();
  await set("active");
  expect(waiting()).toBeNull();
  expect(warrantIn(await verify({ ...stage, ctx: slow }, key, id)).state).toBe("escalated");
  const second = waiting();
  expect(second!.id < first!.id).toBeTrue();

  const decide = async (by: PersonCaller, decision: "dispute" | "release", named = id) =>
    codeOf(
      await resolveEscalation(
        ctx,
        by,
        { id: named, decision, releasedBps: null, note: null, ifMatch: null },
        idempotencyOf(),
      ),
    );
  expect(await decide(stage.admin, "release", first!.id)).toBe("illegal_transition");
  expect(await decide(stage.admin, "dispute")).toBe(200);
  expect(waiting()).toMatchObject({ id: second!.id, status: "disputed" });
  expect(await decide(stage.admin, "release")).toBe("second_person_required");
  // A backup audits its copy by the same rules.
  expect(await ctx.store.audit()).toEqual([]);
  expect(await decide(stage.owner, "release")).toBe(200);
  expect(waiting()).toBeNull();
});
