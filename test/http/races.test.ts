import { afterAll, beforeAll, expect, test } from "bun:test";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createSession } from "../../src/services/admin/sessions.ts";
import { freshKey, type Reply } from "../support/client.ts";
import { must } from "../support/organisations.ts";
import { type Service, startTestServer } from "../support/server.ts";
import { type Source, startSource } from "../support/source.ts";

/** Requests that meet, over real sockets: one of them wins, and the books say so. */

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
const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));

test("fifty opens with one key hold once, and all say the same", async () => {
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
  expect(service.books(home)).toEqual({ available: 999_900n, held: 100n, paid: 0n });
  const listed = await service.get("/v1/warrants", { as: home.live.as });
  expect(listed.body.data).toHaveLength(1);
  expect(service.world(home).trace).toHaveLength(1);
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
  expect(service.books(home).held).toBe(BigInt(opened!.body.amount));
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
  expect(service.books(home)).toEqual({ available: 999_900n, held: 0n, paid: 100n });
  const trace = await service.get(`/v1/warrants/${id}/trace`, { as: home.live.as });
  expect(trace.body.data.map(({ to }: { to: string }) => to)).toEqual(["held", "verifying", "released"]);
  expect(service.ctx.store.reader.checks.of(id)).toHaveLength(1);
});

/** Resolves once all but one have. */
function allButOne(replies: readonly Promise<Reply>[]): Promise<readonly Reply[]> {
  const { promise, resolve } = Promise.withResolvers<readonly Reply[]>();
  const done: Reply[] = [];
  for (const reply of replies)
    void reply.then((one) => {
      if (done.push(one) === replies.length - 1) resolve([...done]);
    });
  return promise;
}

test("twenty verifies of one warrant with one key: one answer, for all who are not told to wait", async () => {
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
  expect(service.books(home)).toEqual({ available: 999_900n, held: 0n, paid: 100n });
});

test("release against refund: the first commit wins, and nothing is paid twice", async () => {
  const home = await service.organisation();
  const { operator, admin } = home.people;
  for (const round of times(10, (index) => index)) {
    const before = service.books(home);
    const { id } = await service.opened(home);
    const verbs = round % 2 === 0 ? ["release", "refund"] : ["refund", "release"];
    const replies = await Promise.all([
      service.post(`/v1/warrants/${id}/${verbs[0]}`, undefined, { as: operator.as }),
      service.post(`/v1/warrants/${id}/${verbs[1]}`, undefined, { as: admin.as }),
    ]);
    expect(tally(replies)).toEqual({ 200: 1, illegal_transition: 1 });
    const { body } = replies.find(({ status }) => status === 200)!;
    const paid = body.state === "released" ? 100n : 0n;
    expect(service.books(home)).toEqual({
      available: before.available - paid,
      held: 0n,
      paid: before.paid + paid,
    });
    expect((await service.get(`/v1/warrants/${id}`, { as: operator.as })).body).toEqual(body);
  }
});

test("release against refund with If-Match of one version: the loser is told of the version", async () => {
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

test("a person's decision against a verify: whoever is first, and one settlement", async () => {
  const home = await service.organisation();
  const source_url = source.gives("{}");
  for (const _ of times(5, () => null)) {
    const { id } = await service.opened(home);
    const replies = await Promise.all([
      service.post(`/v1/warrants/${id}/verify`, { source_url }, { as: home.live.as }),
      service.post(`/v1/warrants/${id}/refund`, undefined, { as: home.people.operator.as }),
    ]);
    expect(tally(replies)).toEqual({ 200: 1, illegal_transition: 1 });
  }
  expect(service.books(home).held).toBe(0n);
});

test("two opens for the last of the balance: one holds it, the other is 402", async () => {
  for (const _ of times(5, () => null)) {
    const poor = await service.organisation(100n);
    const replies = await Promise.all(
      times(2, () => service.post("/v1/warrants", service.body({ amount: "60" }), { as: poor.live.as })),
    );
    expect(tally(replies)).toEqual({ 201: 1, insufficient_funds: 1 });
    expect(service.books(poor)).toEqual({ available: 40n, held: 60n, paid: 0n });
  }
});

test("forty opens against a session's ceiling and count never pass them", async () => {
  const home = await service.organisation();
  const agent = await home.addAgent();
  const limits = { amount_ceiling: "1000", warrant_limit: 12 };
  must(await createSession(service.ctx, MACHINE, { agent_id: agent.id, ...limits }));
  const body = service.body({ agent_id: agent.id, amount: "90" });
  const replies = await Promise.all(times(40, () => service.post("/v1/warrants", body, { as: agent.as })));
  expect(tally(replies)).toEqual({ 201: 11, session_ceiling_exceeded: 29 });
  expect(service.ctx.store.reader.agents.liveSession(agent.id, Date.now())).toMatchObject({
    amountSpent: 990n,
    warrantCount: 11,
  });
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
  // A dispute that comes first leaves a decision to whoever did not raise it, and is senior enough.
  expect(replies[0]!.status).not.toBe(500);
  const settled = service.world(home).warrants![0] as { state: string };
  expect(["released", "refunded", "disputed"]).toContain(settled.state);
  const decided = replies.filter(({ status }) => status === 200);
  const disputes = decided.filter(({ body }) => body.status === "disputed");
  expect(decided.length - disputes.length).toBeLessThanOrEqual(1);
  expect(service.world(home).escalations).toHaveLength(1);
});
