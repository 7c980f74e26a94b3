import { afterAll, beforeAll, expect, test } from "bun:test";
import { setAgentStatus } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createSession, revokeSession, type SessionInput } from "../../src/services/admin/sessions.ts";
import { freshKey, type Json, type Reply } from "../support/client.ts";
import { must, type TestAgent } from "../support/organisations.ts";
import { type Service, startTestServer } from "../support/server.ts";
import { type Source, startSource } from "../support/source.ts";

/** Requests that meet, over real sockets: one of them wins, and the balance shows it. */

let service: Service;
let source: Source;
beforeAll(async () => {
  source = startSource();
  service = await startTestServer();
});
afterAll(async () => {
  await service?.close();
  source?.stop();
});

/** How often each status and code came. */
function tally(replies: readonly Reply[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { status, code } of replies) {
    const name = code ?? String(status);
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}
/** How many were decided, and how many lost: their warrant had moved before they met it, or after. */
function decidedAndLost(replies: readonly Reply[]): readonly [decided: number, lost: number] {
  const { 200: decided = 0, illegal_transition = 0, version_conflict = 0, ...others } = tally(replies);
  expect(others).toEqual({});
  return [decided, illegal_transition + version_conflict];
}
const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));

test("fifty opens with one key hold once, and all get the same answer", async () => {
  const home = await service.organisation();
  const body = service.body();
  const key = freshKey();
  const replies = await Promise.all(
    times(50, () => service.post("/v1/warrants", body, { as: home.live.as, key })),
  );
  const opened = replies.filter(({ status }) => status === 201);
  const conflicts = replies.filter(
    ({ code }) => code === "idempotency_conflict" || code === "idempotency_in_flight",
  );
  expect(opened.length + conflicts.length).toBe(50);
  expect(new Set(opened.map(({ text }) => text)).size).toBe(1);
  expect(opened.filter(({ headers }) => headers.get("idempotent-replayed") === null)).toHaveLength(1);
  expect(service.balance(home)).toEqual({ available: 999_900n, held: 100n, paid: 0n });
  const listed = await service.get("/v1/warrants", { as: home.live.as });
  expect(listed.body.data).toHaveLength(1);
  expect(service.allRows(home).trace).toHaveLength(1);
});

test("fifty opens with one key and two bodies hold one of them", async () => {
  const home = await service.organisation();
  const key = freshKey();
  const bodies = [service.body({ amount: "100" }), service.body({ amount: "200" })];
  const replies = await Promise.all(
    times(50, (index) => service.post("/v1/warrants", bodies[index % 2], { as: home.live.as, key })),
  );
  expect(tally(replies)).toEqual({ 201: 25, idempotency_key_reused: 25 });
  const [opened] = replies.filter(({ status }) => status === 201);
  expect(service.balance(home).held).toBe(BigInt(opened!.body.amount));
});

test("twenty verifies of one warrant, each with its own key: one decides, and the source is asked once", async () => {
  const home = await service.organisation();
  const { id } = await service.opened(home);
  const held = source.holds();
  const before = source.asked.length;
  const verifies = times(20, () =>
    service.post(`/v1/warrants/${id}/verify`, { source_url: held.url }, { as: home.live.as }),
  );
  await held.arrived;
  const others = (await Promise.race([Promise.all(verifies), allButOne(verifies)])) as readonly Reply[];
  expect(tally(others)).toEqual({ illegal_transition: 19 });
  held.release("{}");
  expect(tally(await Promise.all(verifies))).toEqual({ 200: 1, illegal_transition: 19 });
  expect(source.asked.length - before).toBe(1);
  expect(service.balance(home)).toEqual({ available: 999_900n, held: 0n, paid: 100n });
  const trace = await service.get(`/v1/warrants/${id}/trace`, { as: home.live.as });
  expect(trace.body.data.map(({ to }: { to: string }) => to)).toEqual(["held", "verifying", "released"]);
  expect(service.ctx.reader.checks.of(id)).toHaveLength(1);
});

/** Resolves once all but one have resolved. */
function allButOne(replies: readonly Promise<Reply>[]): Promise<readonly Reply[]> {
  const { promise, resolve } = Promise.withResolvers<readonly Reply[]>();
  const done: Reply[] = [];
  for (const reply of replies)
    void reply.then((one) => {
      if (done.push(one) === replies.length - 1) resolve([...done]);
    });
  return promise;
}

test("twenty verifies of one warrant with one key: the same answer for all that are not refused as in flight", async () => {
  const home = await service.organisation();
  const { id } = await service.opened(home);
  const key = freshKey();
  const source_url = source.gives("{}");
  const send = () => service.post(`/v1/warrants/${id}/verify`, { source_url }, { as: home.live.as, key });
  const replies = await Promise.all(times(20, send));
  const decided = replies.filter(({ status }) => status === 200);
  expect(new Set(decided.map(({ text }) => text)).size).toBe(1);
  expect(replies.filter(({ code }) => code === "idempotency_in_flight")).toHaveLength(20 - decided.length);
  expect((await send()).text).toBe(decided[0]!.text);
  expect(service.balance(home)).toEqual({ available: 999_900n, held: 0n, paid: 100n });
});

test("release against refund: the first commit wins, and nothing is paid twice", async () => {
  const home = await service.organisation();
  const { operator, admin } = home.people;
  for (const round of times(10, (index) => index)) {
    const before = service.balance(home);
    const { id } = await service.opened(home);
    const verbs = round % 2 === 0 ? ["release", "refund"] : ["refund", "release"];
    const replies = await Promise.all([
      service.post(`/v1/warrants/${id}/${verbs[0]}`, undefined, { as: operator.as }),
      service.post(`/v1/warrants/${id}/${verbs[1]}`, undefined, { as: admin.as }),
    ]);
    expect(decidedAndLost(replies)).toEqual([1, 1]);
    const { body } = replies.find(({ status }) => status === 200)!;
    const paid = body.state === "released" ? 100n : 0n;
    expect(service.balance(home)).toEqual({
      available: before.available - paid,
      held: 0n,
      paid: before.paid + paid,
    });
    expect((await service.get(`/v1/warrants/${id}`, { as: operator.as })).body).toEqual(body);
  }
});

test("release against refund with If-Match of one version: the loser gets version_conflict", async () => {
  const home = await service.organisation();
  const { id } = await service.opened(home);
  const options = { as: home.people.operator.as, headers: { "If-Match": '"1"' } };
  const replies = await Promise.all(
    ["release", "refund", "release"].map((verb) =>
      service.post(`/v1/warrants/${id}/${verb}`, undefined, options),
    ),
  );
  expect(tally(replies)).toEqual({ 200: 1, version_conflict: 2 });
});

test("a person's decision against a verify: the first one settles, and there is one settlement", async () => {
  const home = await service.organisation();
  const source_url = source.gives("{}");
  for (const _ of times(5, () => null)) {
    const { id } = await service.opened(home);
    const replies = await Promise.all([
      service.post(`/v1/warrants/${id}/verify`, { source_url }, { as: home.live.as }),
      service.post(`/v1/warrants/${id}/refund`, undefined, { as: home.people.operator.as }),
    ]);
    expect(decidedAndLost(replies)).toEqual([1, 1]);
  }
  expect(service.balance(home).held).toBe(0n);
});

test("two opens for the last of the balance: one holds it, the other is 402", async () => {
  for (const _ of times(5, () => null)) {
    const poor = await service.organisation(100n);
    const replies = await Promise.all(
      times(2, () => service.post("/v1/warrants", service.body({ amount: "60" }), { as: poor.live.as })),
    );
    expect(tally(replies)).toEqual({ 201: 1, insufficient_funds: 1 });
    expect(service.balance(poor)).toEqual({ available: 40n, held: 60n, paid: 0n });
  }
});

const liveSession = (agent: TestAgent) => service.ctx.reader.agents.liveSession(agent.id, Date.now());
const sessionFor = (agent: TestAgent, limits: Omit<SessionInput, "agent_id">) =>
  createSession(service.ctx, MACHINE, { agent_id: agent.id, ...limits }).then(must);

/** At most so many opens by one caller, so that a race that never ends fails and does not hang. */
const OPENS_MAX = 500;

/**
 * Eight callers who open one warrant after the other, until they are refused. `begun` resolves after some opens, so that a test
 * can do something in between. `refusals` are the codes that ended them. Each refused open is sent twice, and stays refused.
 */
function openUntilRefused(agent: TestAgent): {
  readonly begun: Promise<void>;
  readonly ended: Promise<{ readonly opened: number; readonly refusals: readonly (string | null)[] }>;
} {
  const begun = Promise.withResolvers<void>();
  const body = service.body({ agent_id: agent.id });
  const send = () => service.post("/v1/warrants", body, { as: agent.as });
  let opened = 0;
  const caller = async (): Promise<readonly (string | null)[]> => {
    for (let count = 0; count < OPENS_MAX; count++) {
      const { code } = await send();
      if (code !== null) return [code, (await send()).code];
      opened += 1;
      if (opened === 20) begun.resolve();
    }
    return ["never refused"];
  };
  const ended = Promise.all(times(8, caller)).then((codes) => ({ opened, refusals: codes.flat() }));
  return { begun: begun.promise, ended };
}

test.each([
  ["its ceiling", { amount_ceiling: "1000" }, "session_ceiling_exceeded"],
  ["its ceiling, and 99 more that nobody can use", { amount_ceiling: "1099" }, "session_ceiling_exceeded"],
  ["its warrant limit", { amount_ceiling: "100000", warrant_limit: 10 }, "session_warrant_limit_reached"],
] as const)("forty opens against a session with room for ten by %s: exactly ten", async (_, limits, code) => {
  const home = await service.organisation();
  const agent = await home.addAgent();
  await sessionFor(agent, limits);
  const body = service.body({ agent_id: agent.id, amount: "100" });
  const callers = [agent.as, home.people.operator.as, home.people.admin.as];
  const replies = await Promise.all(
    times(40, (index) => service.post("/v1/warrants", body, { as: callers[index % 3]! })),
  );
  expect(tally(replies)).toEqual({ 201: 10, [code]: 30 });
  expect(liveSession(agent)).toMatchObject({ amountSpent: 1_000n, warrantCount: 10 });
  expect(service.balance(home)).toEqual({ available: 999_000n, held: 1_000n, paid: 0n });
  const { trace, warrants, idempotency_keys } = service.allRows(home);
  expect([trace?.length, warrants?.length, idempotency_keys?.length]).toEqual([10, 10, 10]);
});

test("opens against refunds under a full session: a returned amount is held once more, and never twice", async () => {
  const home = await service.organisation();
  const agent = await home.addAgent();
  await sessionFor(agent, { amount_ceiling: "1000" });
  const body = { agent_id: agent.id, amount: "100" };
  const opened = await Promise.all(times(10, () => service.opened(home, body, { as: agent.as })));
  const { operator, admin } = home.people;
  const replies = await Promise.all(
    opened.flatMap(({ id }) => [
      service.post("/v1/warrants", service.body(body), { as: agent.as }),
      service.post(`/v1/warrants/${id}/refund`, undefined, { as: operator.as }),
      service.post(`/v1/warrants/${id}/refund`, undefined, { as: admin.as }),
      service.post("/v1/warrants", service.body(body), { as: agent.as }),
    ]),
  );
  const opens = replies.filter(({ status, code }) => status === 201 || code === "session_ceiling_exceeded");
  expect(opens).toHaveLength(20);
  const again = opens.filter(({ status }) => status === 201).length;
  expect(decidedAndLost(replies.filter((reply) => !opens.includes(reply)))).toEqual([10, 10]);
  expect(again).toBeLessThanOrEqual(10);
  expect(liveSession(agent)).toMatchObject({ amountSpent: BigInt(again) * 100n, warrantCount: 10 + again });
  expect(service.balance(home).held).toBe(BigInt(again) * 100n);
});

test("a failing check against opens, under a session with a budget of one failure: all opens came before it", async () => {
  const home = await service.organisation();
  const agent = await home.addAgent({ failure_budget: 9 });
  await sessionFor(agent, { amount_ceiling: "1000000", failure_budget: 1 });
  const { id } = await service.opened(home, { agent_id: agent.id }, { as: agent.as });
  const held = source.holds();
  const check = service.post(`/v1/warrants/${id}/verify`, { source_url: held.url }, { as: agent.as });
  await held.arrived;
  const opens = openUntilRefused(agent);
  await opens.begun;
  held.release("no", { status: 500 });
  expect((await check).body.state).toBe("escalated");
  const { opened, refusals } = await opens.ended;
  expect(refusals).toEqual(Array(16).fill("session_failure_budget_spent"));
  expect(liveSession(agent)).toMatchObject({ warrantCount: 1 + opened, failureCount: 1 });
  expect(service.balance(home).held).toBe(BigInt(1 + opened) * 100n);
});

test("failing checks that end together pause their agent at its budget, count every one, and end its opens", async () => {
  const home = await service.organisation();
  const agent = await home.addAgent({ failure_budget: 3 });
  await sessionFor(agent, { amount_ceiling: "1000000", failure_budget: 9 });
  const warrants = await Promise.all(
    times(5, () => service.opened(home, { agent_id: agent.id }, { as: agent.as })),
  );
  const opens = openUntilRefused(agent);
  await opens.begun;
  const source_url = source.gives("no", { status: 500 });
  const verifies = warrants.map(({ id }) =>
    service.post(`/v1/warrants/${id}/verify`, { source_url }, { as: agent.as }),
  );
  expect(tally(await Promise.all(verifies))).toEqual({ 200: 5 });
  const { opened, refusals } = await opens.ended;
  expect(refusals).toEqual(Array(16).fill("agent_not_active"));
  expect(service.ctx.reader.agents.get(agent.id)).toMatchObject({ status: "paused", failureCount: 5 });
  expect(liveSession(agent)).toMatchObject({ warrantCount: 5 + opened, failureCount: 5 });
});

test("a session's revocation against opens: those that opened were charged to it before", async () => {
  const home = await service.organisation();
  const agent = await home.addAgent();
  const session = await sessionFor(agent, { amount_ceiling: "1000000" });
  const opens = openUntilRefused(agent);
  await opens.begun;
  must(await revokeSession(service.ctx, MACHINE, { session_id: session.id }));
  const { opened, refusals } = await opens.ended;
  expect(refusals).toEqual(Array(16).fill("session_revoked"));
  expect(service.ctx.reader.agents.session(session.id)).toMatchObject({
    amountSpent: BigInt(opened) * 100n,
    warrantCount: opened,
  });
  expect(service.balance(home).held).toBe(BigInt(opened) * 100n);
});

test("a new session against opens: each is charged to one of the two, and the new one is used up to the unit", async () => {
  const home = await service.organisation();
  const agent = await home.addAgent();
  const old = await sessionFor(agent, { amount_ceiling: "1000000" });
  const opens = openUntilRefused(agent);
  await opens.begun;
  const fresh = await sessionFor(agent, { amount_ceiling: "1000" });
  const { opened, refusals } = await opens.ended;
  expect(refusals).toEqual(Array(16).fill("session_ceiling_exceeded"));
  const { session } = service.ctx.reader.agents;
  expect(session(fresh.id)).toMatchObject({ amountSpent: 1_000n, warrantCount: 10, revokedAt: null });
  expect(session(old.id)).toMatchObject({
    amountSpent: BigInt(opened - 10) * 100n,
    warrantCount: opened - 10,
    revokedAt: expect.any(Number),
  });
});

test("a kill against verifies: each warrant is escalated or frozen for a person, and nobody is paid", async () => {
  const home = await service.organisation();
  const agent = await home.addAgent();
  await sessionFor(agent, { amount_ceiling: "2000" });
  const body = { agent_id: agent.id };
  const opened = await Promise.all(times(20, () => service.opened(home, body, { as: agent.as })));
  const held = source.holds();
  const callers = [agent.as, home.people.operator.as];
  const send = ({ id }: Json, index: number) =>
    service.post(`/v1/warrants/${id}/verify`, { source_url: held.url }, { as: callers[index % 2]! });
  const verifies = opened.slice(0, 10).map(send);
  await held.arrived;
  const killed = setAgentStatus(service.ctx, MACHINE, { agent_id: agent.id, status: "killed" });
  verifies.push(...opened.slice(10).map(send));
  must(await killed);
  held.release("{}");
  const { 200: escalated = 0, ...refused } = tally(await Promise.all(verifies));
  expect(Object.keys(refused).filter((code) => code !== "illegal_transition")).toEqual([]);
  expect(service.balance(home)).toEqual({ available: 998_000n, held: 2_000n, paid: 0n });
  const states = service.allRows(home).warrants!.map((row) => (row as { state: string }).state);
  expect(states.toSorted()).toEqual([
    ...Array(escalated).fill("escalated"),
    ...Array(20 - escalated).fill("frozen"),
  ]);
  const waiting = await service.get("/v1/console/escalations", { as: home.people.viewer.as });
  const reasons = waiting.body.data.map(({ reason_codes, status }: Json) => [...reason_codes, status]);
  expect(reasons).toEqual(Array(20).fill(["agent_killed", "open"]));
  expect(liveSession(agent)).toMatchObject({ amountSpent: 2_000n, failureCount: 0 });
});

test("a pause against opens: those that opened came before it, and are still verified and paid", async () => {
  const home = await service.organisation();
  const agent = await home.addAgent();
  const { id } = await service.opened(home, { agent_id: agent.id }, { as: agent.as });
  const opens = openUntilRefused(agent);
  await opens.begun;
  must(await setAgentStatus(service.ctx, MACHINE, { agent_id: agent.id, status: "paused" }));
  const { opened, refusals } = await opens.ended;
  expect(refusals).toEqual(Array(16).fill("agent_not_active"));
  const source_url = source.gives("{}");
  const verified = await service.post(`/v1/warrants/${id}/verify`, { source_url }, { as: agent.as });
  expect(verified.body.state).toBe("released");
  expect(service.balance(home)).toMatchObject({ held: BigInt(opened) * 100n, paid: 100n });
});

test("two resolutions of one escalation: one decides", async () => {
  const home = await service.organisation();
  const { id } = await service.opened(home);
  const source_url = source.gives("no", { status: 500 });
  await service.post(`/v1/warrants/${id}/verify`, { source_url }, { as: home.live.as });
  const { operator, admin, owner } = home.people;
  const replies = await Promise.all(
    [operator, admin, owner].map(({ as }, index) =>
      service.post(
        `/v1/console/escalations/${id}/resolve`,
        { decision: ["release", "refund", "dispute"][index] },
        { as },
      ),
    ),
  );
  // If the dispute comes first, a person who did not raise it, and is senior enough, may still decide.
  expect(replies[0]!.status).not.toBe(500);
  const settled = service.allRows(home).warrants![0] as { state: string };
  expect(["released", "refunded", "disputed"]).toContain(settled.state);
  const decided = replies.filter(({ status }) => status === 200);
  const disputes = decided.filter(({ body }) => body.status === "disputed");
  expect(decided.length - disputes.length).toBeLessThanOrEqual(1);
  expect(service.allRows(home).escalations).toHaveLength(1);
});
