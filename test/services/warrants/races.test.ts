import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Refusal } from "../../../src/core/errors.ts";
import type { KeyCaller } from "../../../src/core/roles.ts";
import { setAgentStatus } from "../../../src/services/admin/agents.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { createSession, revokeSession } from "../../../src/services/admin/sessions.ts";
import type { Answer } from "../../../src/services/idempotency.ts";
import { expireWarrant } from "../../../src/services/warrants/expire.ts";
import { interruptCheck } from "../../../src/services/warrants/interrupt.ts";
import { resolveEscalation } from "../../../src/services/warrants/resolve.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import {
  ALL_PASS,
  codeOf,
  createCaller,
  createStage,
  idempotencyOf,
  must,
  NONE_PASS,
  open,
  SCRIPTED,
  type Stage,
  settle,
  verify,
  warrantIn,
} from "../../support/stage.ts";
import { together } from "../../support/together.ts";

/** Requests at the same time: which one wins, what the others are answered, and what must not happen. */

let ctx: TestContext;
let stage: Stage;
let agent: KeyCaller;
/** A check waits at this gate until the test opens it. */
let gate: PromiseWithResolvers<void>;
let fetches: number;
let breaks: boolean;

beforeEach(async () => {
  gate = Promise.withResolvers();
  gate.resolve();
  fetches = 0;
  breaks = false;
  ctx = createTestContext({
    ...SCRIPTED,
    fetchEvidence: async (...asked) => {
      fetches += 1;
      await gate.promise;
      if (breaks) throw new Error("the evaluator is gone");
      return SCRIPTED.fetchEvidence(...asked);
    },
  });
  stage = await createStage(ctx, { funds: "1000" });
  agent = await createCaller(stage);
});

afterEach(() => ctx.close());

const holdChecks = () => {
  gate = Promise.withResolvers();
};

const scope = () => ({ organisationId: stage.organisationId, mode: stage.mode });
const balance = () => ctx.reader.balances.list(scope())[0]?.balance;
const warrants = () => ctx.reader.warrants.byCreation(scope(), {}, {}, 100);
const states = (id: string) => ctx.reader.trace.of(id).map(({ to }) => to);
const checks = (id: string) => ctx.reader.checks.of(id);
const times = <T>(count: number, make: (index: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => make(index)));
const counted = (answers: readonly (Answer | Refusal)[]): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const answer of answers) {
    const name = `${codeOf(answer)}${"replayed" in answer && answer.replayed ? " replayed" : ""}`;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
};
const openOne = async (input: Parameters<typeof open>[2] = {}): Promise<string> =>
  warrantIn(await open(stage, agent, input)).id;
/** Resolves when the check of a warrant has begun. */
async function verifying(id: string): Promise<void> {
  while (reread(id).state !== "verifying") await new Promise(setImmediate);
}

const reread = (id: string) => {
  const warrant = ctx.reader.warrants.find(id);
  if (!warrant) throw new Error(`no warrant ${id}`);
  return warrant;
};

describe("opens", () => {
  test("fifty opens with one key make one warrant and forty-nine replays of its answer", async () => {
    const idempotency = idempotencyOf();
    const answers = await times(50, () => open(stage, agent, {}, idempotency));
    expect(counted(answers)).toEqual({ "201": 1, "201 replayed": 49 });
    expect(new Set(answers.map((answer) => must(answer).body)).size).toBe(1);
    expect(warrants()).toHaveLength(1);
    expect(states(warrantIn(answers[0]!).id)).toEqual(["held"]);
    expect(balance()).toEqual({ available: 900n, held: 100n, paid: 0n });
  });

  test("one key with two bodies at once: the first wins, the other gets idempotency_key_reused", async () => {
    const key = "shared";
    const answers = await times(20, (index) =>
      open(
        stage,
        agent,
        { amount: index % 2 === 0 ? "100" : "200" },
        idempotencyOf(key, `body ${index % 2}`),
      ),
    );
    expect(counted(answers)).toEqual({ "201": 1, "201 replayed": 9, idempotency_key_reused: 10 });
    expect(balance()).toEqual({ available: 900n, held: 100n, paid: 0n });
  });

  test("two opens for the last of the balance: one holds it, the other gets a 402 and no warrant", async () => {
    const answers = await times(2, () => open(stage, agent, { amount: "1000" }));
    expect(counted(answers)).toEqual({ "201": 1, insufficient_funds: 1 });
    expect(warrants()).toHaveLength(1);
    expect(balance()).toEqual({ available: 0n, held: 1000n, paid: 0n });
  });

  test("a hundred opens with money for ten: ten hold, and the balance is zero", async () => {
    const answers = await times(100, () => open(stage, agent));
    expect(counted(answers)).toEqual({ "201": 10, insufficient_funds: 90 });
    expect(balance()).toEqual({ available: 0n, held: 1000n, paid: 0n });
  });

  test("opens for the last of a session: one is charged, the others are refused", async () => {
    await createSession(ctx, MACHINE, { agent_id: agent.agentId, amount_ceiling: "150", warrant_limit: 5 });
    const answers = await times(5, () => open(stage, agent, { agent_id: agent.agentId }));
    expect(counted(answers)).toEqual({ "201": 1, session_ceiling_exceeded: 4 });
    const session = ctx.reader.agents.liveSession(agent.agentId, ctx.now());
    expect(session).toMatchObject({ amountSpent: 100n, warrantCount: 1 });
  });
});

describe("verifies", () => {
  test("twenty verifies of one warrant with keys of their own make one check; the others are illegal", async () => {
    const id = await openOne();
    const answers = await times(20, () => verify(stage, agent, id));
    expect(counted(answers)).toEqual({ "200": 1, illegal_transition: 19 });
    expect(fetches).toBe(1);
    expect(checks(id)).toHaveLength(1);
    expect(states(id)).toEqual(["held", "verifying", "released"]);
    expect(balance()).toEqual({ available: 900n, held: 0n, paid: 100n });
  });

  test("twenty verifies with one key make one check; the others are in flight, and a retry replays", async () => {
    const id = await openOne();
    const idempotency = idempotencyOf();
    const answers = await times(20, () => verify(stage, agent, id, ALL_PASS, idempotency));
    expect(counted(answers)).toEqual({ "200": 1, idempotency_in_flight: 19 });
    expect(fetches).toBe(1);
    const replays = await times(20, () => verify(stage, agent, id, ALL_PASS, idempotency));
    expect(counted(replays)).toEqual({ "200 replayed": 20 });
    expect(new Set([...replays, ...answers].flatMap((a) => ("body" in a ? [a.body] : []))).size).toBe(1);
    expect(checks(id)).toHaveLength(1);
    expect(balance()).toEqual({ available: 900n, held: 0n, paid: 100n });
  });

  test("a release while a check runs is illegal, and the check decides", async () => {
    const id = await openOne();
    holdChecks();
    const check = verify(stage, agent, id, NONE_PASS);
    const released = await settle(stage, stage.operator, id, "release");
    expect(codeOf(released)).toBe("illegal_transition");
    gate.resolve();
    expect(warrantIn(await check).state).toBe("escalated");
    expect(balance()).toEqual({ available: 900n, held: 100n, paid: 0n });
  });

  test("a check that was interrupted decides nothing when it comes back, and its key is free", async () => {
    const id = await openOne();
    const idempotency = idempotencyOf();
    holdChecks();
    const check = verify(stage, agent, id, ALL_PASS, idempotency);
    await verifying(id);
    expect(await interruptCheck(ctx, reread(id))).toBe(true);
    gate.resolve();
    expect(codeOf(await check)).toBe("version_conflict");
    expect(checks(id)).toHaveLength(0);
    expect(balance()).toEqual({ available: 900n, held: 100n, paid: 0n });
    expect(codeOf(await verify(stage, agent, id, ALL_PASS, idempotency))).toBe(200);
    expect(states(id)).toEqual(["held", "verifying", "held", "verifying", "released"]);
  });

  test("a check that fails with an error decides nothing: the warrant is held, no failure counts, its key is free", async () => {
    const id = await openOne({ agent_id: agent.agentId });
    const idempotency = idempotencyOf();
    breaks = true;
    const twice = await Promise.allSettled([
      verify(stage, agent, id, ALL_PASS, idempotency),
      verify(stage, agent, id, ALL_PASS, idempotency),
    ]);
    expect(twice.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
    expect(states(id)).toEqual(["held", "verifying", "held"]);
    expect(checks(id)).toHaveLength(0);
    expect(ctx.reader.agents.get(agent.agentId)?.failureCount).toBe(0);
    breaks = false;
    expect(codeOf(await verify(stage, agent, id, ALL_PASS, idempotency))).toBe(200);
    expect(balance()).toEqual({ available: 900n, held: 0n, paid: 100n });
  });

  test("an interrupted check cannot finish a later one with the same key", async () => {
    const id = await openOne();
    const idempotency = idempotencyOf();
    holdChecks();
    const first = verify(stage, agent, id, ALL_PASS, idempotency);
    await verifying(id);
    await interruptCheck(ctx, reread(id));
    const second = verify(stage, agent, id, NONE_PASS, idempotency);
    await verifying(id);
    gate.resolve();
    expect(codeOf(await first)).toBe("version_conflict");
    expect(warrantIn(await second).state).toBe("escalated");
    expect(states(id)).toEqual(["held", "verifying", "held", "verifying", "escalated"]);
  });

  test("an interruption of an earlier check does nothing to a later one", async () => {
    const id = await openOne();
    holdChecks();
    const first = verify(stage, agent, id, NONE_PASS);
    await verifying(id);
    const begun = reread(id);
    expect(await Promise.all([interruptCheck(ctx, begun), interruptCheck(ctx, begun)])).toEqual([
      true,
      false,
    ]);
    const second = verify(stage, agent, id, ALL_PASS);
    await verifying(id);
    expect(await interruptCheck(ctx, begun)).toBe(false);
    gate.resolve();
    expect([codeOf(await first), codeOf(await second)]).toEqual(["version_conflict", 200]);
    expect(states(id)).toEqual(["held", "verifying", "held", "verifying", "released"]);
  });

  test("an interruption that comes after the outcome does nothing", async () => {
    const id = await openOne();
    holdChecks();
    const check = verify(stage, agent, id);
    await verifying(id);
    const begun = reread(id);
    gate.resolve();
    must(await check);
    expect(await interruptCheck(ctx, begun)).toBe(false);
    expect(states(id)).toEqual(["held", "verifying", "released"]);
  });
});

describe("decisions", () => {
  test.each([
    ["release", "refund"],
    ["refund", "release"],
  ] as const)(
    "%s against %s: the first wins, the other is illegal, and money moves once",
    async (first, second) => {
      const id = await openOne();
      const answers = await Promise.all([
        settle(stage, stage.operator, id, first),
        settle(stage, stage.admin, id, second),
      ]);
      expect(answers.map(codeOf)).toEqual([200, "illegal_transition"]);
      expect(states(id)).toEqual(["held", first === "release" ? "released" : "refunded"]);
      const paid = first === "release" ? 100n : 0n;
      expect(balance()).toEqual({ available: 1000n - paid, held: 0n, paid });
    },
  );

  test("release against refund, both from the version that they saw: the other is a version conflict", async () => {
    const id = await openOne();
    const answers = await Promise.all([
      settle(stage, stage.operator, id, "refund", { ifMatch: 1 }),
      settle(stage, stage.admin, id, "release", { ifMatch: 1 }),
    ]);
    expect(answers.map(codeOf)).toEqual([200, "version_conflict"]);
    expect(balance()).toEqual({ available: 1000n, held: 0n, paid: 0n });
  });

  test("a decision against a sweep: the first commit wins", async () => {
    const [decidedFirst, sweptFirst] = [await openOne(), await openOne()];
    ctx.clock.now += 3_600_000;
    const outcomes = await Promise.all([
      settle(stage, stage.operator, decidedFirst, "release"),
      expireWarrant(ctx, reread(decidedFirst)),
      expireWarrant(ctx, reread(sweptFirst)),
      settle(stage, stage.operator, sweptFirst, "release"),
    ]);
    expect([codeOf(outcomes[0]), outcomes[1], outcomes[2], codeOf(outcomes[3])]).toEqual([
      200,
      false,
      true,
      "illegal_transition",
    ]);
    expect(states(decidedFirst)).toEqual(["held", "released"]);
    expect(states(sweptFirst)).toEqual(["held", "expired"]);
    expect(balance()).toEqual({ available: 900n, held: 0n, paid: 100n });
  });

  test("two sweeps of one warrant expire it once, and count one failure", async () => {
    const id = await openOne({ agent_id: agent.agentId });
    ctx.clock.now += 3_600_000;
    const warrant = reread(id);
    expect(await times(10, () => expireWarrant(ctx, warrant))).toEqual([true, ...Array(9).fill(false)]);
    expect(ctx.reader.agents.get(agent.agentId)?.failureCount).toBe(1);
    expect(balance()).toEqual({ available: 1000n, held: 0n, paid: 0n });
  });

  test("a verify against a sweep: one of them expires the warrant, and no check runs", async () => {
    const ids = [await openOne(), await openOne()] as const;
    ctx.clock.now += 3_600_000;
    const outcomes = await Promise.all([
      verify(stage, agent, ids[0]),
      expireWarrant(ctx, reread(ids[0])),
      expireWarrant(ctx, reread(ids[1])),
      verify(stage, agent, ids[1]),
    ]);
    expect([codeOf(outcomes[0] as Answer), codeOf(outcomes[3] as Answer)]).toEqual([
      "illegal_transition",
      "illegal_transition",
    ]);
    expect(outcomes.slice(1, 3)).toEqual([false, true]);
    for (const id of ids) expect(states(id)).toEqual(["held", "expired"]);
    expect(fetches).toBe(0);
  });

  test("two people resolve one escalation: the first wins, and the other's decision changes nothing", async () => {
    const id = await openOne();
    must(await verify(stage, agent, id, NONE_PASS));
    const resolve = (caller: Stage["operator"], decision: "release" | "refund") =>
      resolveEscalation(
        ctx,
        caller,
        { id, decision, releasedBps: null, note: decision, ifMatch: null },
        idempotencyOf(),
      );
    const answers = await Promise.all([resolve(stage.operator, "refund"), resolve(stage.admin, "release")]);
    expect(answers.map(codeOf)).toEqual([200, "illegal_transition"]);
    const [escalation] = ctx.reader.escalations.list(scope(), 10);
    expect(escalation).toMatchObject({
      decision: "refund",
      note: "refund",
      resolvedBy: stage.operator.userId,
    });
    expect(balance()).toEqual({ available: 1000n, held: 0n, paid: 0n });
  });
});

describe("switches", () => {
  const kill = () => setAgentStatus(ctx, MACHINE, { agent_id: agent.agentId, status: "killed" });

  test("a kill against a verify that comes after it: no check begins, and the warrant is frozen", async () => {
    const id = await openOne({ agent_id: agent.agentId });
    const [, verified] = await together(
      () => kill(),
      () => verify(stage, stage.operator, id),
    );
    expect(codeOf(verified)).toBe("illegal_transition");
    expect(fetches).toBe(0);
    expect(states(id)).toEqual(["held", "frozen"]);
    expect(ctx.reader.escalations.list(scope(), 10)).toMatchObject([
      { warrantId: id, status: "open", checkId: null, score: null, reasonCodes: ["agent_killed"] },
    ]);
  });

  test("a kill against a check that had begun: a clean pass escalates, and nobody is paid", async () => {
    const id = await openOne({ agent_id: agent.agentId });
    holdChecks();
    const check = verify(stage, agent, id, ALL_PASS);
    await kill();
    gate.resolve();
    expect(warrantIn(await check).state).toBe("escalated");
    expect(checks(id)).toMatchObject([{ passed: true, outcome: "escalate", reasonCodes: ["agent_killed"] }]);
    expect(balance()).toEqual({ available: 900n, held: 100n, paid: 0n });
  });

  test("a kill against a check that never answers: it is frozen, not held", async () => {
    const id = await openOne({ agent_id: agent.agentId });
    holdChecks();
    const check = verify(stage, agent, id, ALL_PASS);
    await kill();
    expect(await interruptCheck(ctx, reread(id))).toBe(true);
    gate.resolve();
    expect(codeOf(await check)).toBe("version_conflict");
    expect(states(id)).toEqual(["held", "verifying", "frozen"]);
  });

  test("a kill against an open: what was opened before it is frozen, what comes after is refused", async () => {
    const [before, , after] = await together(
      () => open(stage, agent, { agent_id: agent.agentId }),
      () => kill(),
      () => open(stage, agent, { agent_id: agent.agentId }),
    );
    expect([codeOf(before), codeOf(after)]).toEqual([201, "agent_not_active"]);
    expect(warrants().map(({ state }) => state)).toEqual(["frozen"]);
    expect(balance()).toEqual({ available: 900n, held: 100n, paid: 0n });
  });

  test("a kill against a reactivation: the last one decides whether the warrants are frozen or held, all alike", async () => {
    const id = await openOne({ agent_id: agent.agentId });
    const unresolved = () =>
      ctx.reader.escalations.list(scope(), 10).filter(({ status }) => status !== "resolved").length;
    const set = (status: "active" | "killed") =>
      setAgentStatus(ctx, MACHINE, { agent_id: agent.agentId, status });
    await together(
      () => set("killed"),
      () => set("active"),
    );
    expect([reread(id).state, unresolved()]).toEqual(["held", 0]);
    await together(
      () => set("killed"),
      () => set("active"),
      () => set("killed"),
    );
    expect([reread(id).state, unresolved()]).toEqual(["frozen", 1]);
    await together(
      () => set("active"),
      () => set("killed"),
    );
    expect([reread(id).state, unresolved()]).toEqual(["frozen", 1]);
    await together(
      () => set("active"),
      () => set("killed"),
      () => set("active"),
    );
    expect([reread(id).state, unresolved()]).toEqual(["held", 0]);
    expect(balance()).toEqual({ available: 900n, held: 100n, paid: 0n });
  });

  test("a kill against a release: each warrant is either released or frozen, never both", async () => {
    const ids = await times(20, () => openOne({ agent_id: agent.agentId, amount: "10" }));
    const [, ...answers] = await Promise.all([
      kill(),
      ...ids.map((id) => settle(stage, stage.operator, id, "release")),
    ]);
    // A person may also release a frozen warrant. So whichever came first, each is paid once.
    expect(answers.map((answer) => codeOf(answer as Answer))).toEqual(Array(20).fill(200));
    expect(balance()).toEqual({ available: 800n, held: 0n, paid: 200n });
    const unresolved = ctx.reader.escalations
      .list(scope(), 100)
      .filter(({ status }) => status !== "resolved");
    expect(unresolved).toEqual([]);
  });

  test("a revoked session against an open: after it the open is refused, before it the hold stays charged", async () => {
    const session = must(
      await createSession(ctx, MACHINE, { agent_id: agent.agentId, amount_ceiling: "500" }),
    );
    const [before, revoked, after] = await together(
      () => open(stage, agent, { agent_id: agent.agentId }),
      () => revokeSession(ctx, MACHINE, { session_id: session.id }),
      () => open(stage, agent, { agent_id: agent.agentId }),
    );
    must(revoked);
    expect([codeOf(before), codeOf(after)]).toEqual([201, "session_revoked"]);
    expect(ctx.reader.agents.session(session.id)).toMatchObject({
      amountSpent: 100n,
      warrantCount: 1,
      revokedAt: ctx.now(),
    });
    expect(balance()).toEqual({ available: 900n, held: 100n, paid: 0n });
  });

  const session = (id: string) => ctx.reader.agents.session(id);
  const createFor = async (ceiling: string, rest: { failure_budget?: number } = {}) =>
    must(await createSession(ctx, MACHINE, { agent_id: agent.agentId, amount_ceiling: ceiling, ...rest }));
  const openNamed = () => open(stage, agent, { agent_id: agent.agentId });

  test("a new session against opens: the one before it is charged to the old session, the one after to the new", async () => {
    const old = await createFor("100");
    const [before, fresh, after] = await together(
      () => openNamed(),
      () => createFor("100"),
      () => openNamed(),
    );
    expect([codeOf(before), codeOf(after)]).toEqual([201, 201]);
    expect(session(old.id)).toMatchObject({ amountSpent: 100n, warrantCount: 1, revokedAt: ctx.now() });
    expect(session(fresh.id)).toMatchObject({ amountSpent: 100n, warrantCount: 1, revokedAt: null });
    expect(reread(warrantIn(before).id).sessionId).toBe(old.id);
    expect(reread(warrantIn(after).id).sessionId).toBe(fresh.id);
  });

  test("a refund against opens under a full session: the one before it is refused, the one after has the room", async () => {
    const { id } = await createFor("100");
    const full = warrantIn(await openNamed());
    const [before, , after, last] = await together(
      () => openNamed(),
      () => settle(stage, stage.operator, full.id, "refund"),
      () => openNamed(),
      () => openNamed(),
    );
    expect([codeOf(before), codeOf(after), codeOf(last)]).toEqual([
      "session_ceiling_exceeded",
      201,
      "session_ceiling_exceeded",
    ]);
    expect(session(id)).toMatchObject({ amountSpent: 100n, warrantCount: 2 });
    expect(balance()).toEqual({ available: 900n, held: 100n, paid: 0n });
  });

  test("a sweep against opens under a full session: the same as a refund, with one more failure", async () => {
    const { id } = await createFor("100");
    const full = warrantIn(await openNamed());
    ctx.clock.now += 3_600_000;
    const [before, , after] = await together(
      () => openNamed(),
      () => expireWarrant(ctx, reread(full.id)),
      () => openNamed(),
    );
    expect([codeOf(before), codeOf(after)]).toEqual(["session_ceiling_exceeded", 201]);
    expect(session(id)).toMatchObject({ amountSpent: 100n, warrantCount: 2, failureCount: 1 });
  });

  test("a pause against opens: the one before it holds, and is still verified; the one after is refused", async () => {
    const [before, , after] = await together(
      () => openNamed(),
      () => setAgentStatus(ctx, MACHINE, { agent_id: agent.agentId, status: "paused" }),
      () => openNamed(),
    );
    expect([codeOf(before), codeOf(after)]).toEqual([201, "agent_not_active"]);
    expect(warrants()).toHaveLength(1);
    expect(warrantIn(await verify(stage, agent, warrantIn(before).id)).state).toBe("released");
  });

  test("failing checks that end in one commit: each is counted, the agent pauses once, and what comes after is refused", async () => {
    const { id } = await createFor("1000", { failure_budget: 9 });
    const opened = [await openNamed(), await openNamed(), await openNamed(), await openNamed()];
    holdChecks();
    const checks = opened.map((answer) => verify(stage, agent, warrantIn(answer).id, NONE_PASS));
    // It is answered after the commit in which the checks begin.
    must(await openNamed());
    gate.resolve();
    const before = openNamed();
    expect((await Promise.all(checks)).map((check) => warrantIn(check).state)).toEqual(
      Array(4).fill("escalated"),
    );
    const after = openNamed();
    expect([codeOf(await before), codeOf(await after)]).toEqual([201, "agent_not_active"]);
    expect(ctx.reader.agents.get(agent.agentId)).toMatchObject({ status: "paused", failureCount: 4 });
    expect(session(id)).toMatchObject({ amountSpent: 600n, warrantCount: 6, failureCount: 4 });
  });

  test("a new session against a check under the old one: the failure is the old one's", async () => {
    const old = await createFor("100", { failure_budget: 1 });
    const { id } = warrantIn(await openNamed());
    holdChecks();
    const check = verify(stage, agent, id, NONE_PASS);
    const fresh = await createFor("100", { failure_budget: 1 });
    gate.resolve();
    expect(warrantIn(await check).state).toBe("escalated");
    expect([session(old.id)?.failureCount, session(fresh.id)?.failureCount]).toEqual([1, 0]);
    expect(codeOf(await openNamed())).toBe(201);
  });

  test("a new session against a settlement: what returns goes back to the session it was charged to", async () => {
    const old = must(await createSession(ctx, MACHINE, { agent_id: agent.agentId, amount_ceiling: "500" }));
    const id = await openOne({ agent_id: agent.agentId });
    const [replacement] = await together(
      () => createSession(ctx, MACHINE, { agent_id: agent.agentId, amount_ceiling: "500" }),
      () => settle(stage, stage.operator, id, "refund"),
    );
    expect(ctx.reader.agents.session(old.id)).toMatchObject({ amountSpent: 0n, revokedAt: ctx.now() });
    expect(ctx.reader.agents.session(must(replacement).id)).toMatchObject({
      amountSpent: 0n,
      warrantCount: 0,
      revokedAt: null,
    });
  });
});
