import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { UNSEEN_ANSWER } from "../../src/core/capsule.ts";
import { reachedEvidence } from "../../src/core/clauses/evidence.ts";
import { setAgentStatus } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { NOBODY, type SendOptions } from "../support/client.ts";
import { must } from "../support/organisations.ts";
import { type Service, startTestServer, startTestShell } from "../support/server.ts";
import { type Source, startSource } from "../support/source.ts";

/** Verifies that are refused: because of the caller, the agent, the deadline or the URL. */

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

const verify = (id: string, source_url: string, options: SendOptions, on = service) =>
  on.post(`/v1/warrants/${id}/verify`, { source_url }, options);

test("only the agent's own key, or a person from operator up, verifies a warrant of an agent", async () => {
  const home = await service.organisation();
  const rival = await home.addAgent();
  const url = source.gives("{}");
  const { id } = await service.opened(home, { agent_id: home.live.id });
  const refused: readonly [status: number, code: string, options: SendOptions][] = [
    [403, "agent_key_mismatch", { as: rival.as }],
    [404, "warrant_not_found", { as: home.sandbox.as }],
    [403, "insufficient_role", { as: home.people.viewer.as }],
    [401, "not_authenticated", { as: NOBODY }],
  ];
  const asked = source.asked.length;
  for (const [status, code, options] of refused)
    await service.refuses(home, [status, code], () => verify(id, url, options));
  expect(source.asked.length).toBe(asked);
  expect((await verify(id, url, { as: home.people.operator.as })).body.state).toBe("released");
  const nobodys = await service.opened(home);
  expect((await verify(nobodys.id, url, { as: rival.as })).body.state).toBe("released");
});

test("a paused agent still verifies; a killed one's keys only read, and what it held waits for a person", async () => {
  const home = await service.organisation();
  const agent = await home.addAgent();
  const url = source.gives("{}");
  const named = { agent_id: agent.id };
  const [first, second] = [
    await service.opened(home, named, agent),
    await service.opened(home, named, agent),
  ];
  const free = await service.opened(home);
  must(await setAgentStatus(service.ctx, MACHINE, { agent_id: agent.id, status: "paused" }));
  expect((await verify(first.id, url, agent)).body.state).toBe("released");
  must(await setAgentStatus(service.ctx, MACHINE, { agent_id: agent.id, status: "killed" }));
  expect((await service.get(`/v1/warrants/${second.id}`, agent)).body.state).toBe("frozen");
  for (const { as } of [agent, home.people.owner])
    await service.refuses(home, [409, "illegal_transition"], () => verify(second.id, url, { as }));
  await service.refuses(home, [403, "agent_not_active"], () => verify(free.id, url, agent));
});

test("an agent killed in the middle of its check pays nobody", async () => {
  const home = await service.organisation();
  const held = source.holds();
  const { id } = await service.opened(home, { agent_id: home.live.id });
  const running = verify(id, held.url, { as: home.live.as });
  await held.arrived;
  must(await setAgentStatus(service.ctx, MACHINE, { agent_id: home.live.id, status: "killed" }));
  held.release("{}");
  const reply = await running;
  expect([reply.status, reply.body.state]).toEqual([200, "escalated"]);
  const listed = await service.get("/v1/console/escalations", { as: home.people.viewer.as });
  expect(listed.body.data).toMatchObject([{ warrant_id: id, score: 10_000, reason_codes: ["agent_killed"] }]);
  expect(service.balance(home)).toEqual({ available: 999_900n, held: 100n, paid: 0n });
});

test("a verify past the deadline returns the hold and answers 409; one that began before may finish after", async () => {
  const arrived = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const shell = startTestShell({
    async fetchEvidence() {
      arrived.resolve();
      await released.promise;
      return {
        evidence: reachedEvidence({ status: 200 }),
        status: 200,
        bytes: 0,
        durationMs: 1,
        answer: UNSEEN_ANSWER,
      };
    },
  });
  try {
    const home = await shell.organisation();
    const { as } = home.live;
    const url = "http://source.example/";
    const soon = { deadline: shell.timeIn(1_000) };
    const [late, begun] = [await shell.opened(home, soon), await shell.opened(home, soon)];
    const running = verify(begun.id, url, { as }, shell);
    await arrived.promise;
    shell.clock.now += 1_000;
    const reply = await verify(late.id, url, { as, key: "late" }, shell);
    expect([reply.status, reply.code]).toEqual([409, "illegal_transition"]);
    const read = await shell.get(`/v1/warrants/${late.id}`, { as });
    expect(read.body).toMatchObject({ state: "expired", version: 2, released_bps: null });
    expect(read.body.settled_at).toBe(shell.timeIn(0));
    expect(shell.balance(home)).toEqual({ available: 999_900n, held: 100n, paid: 0n });
    // It expires once, and the refusal did not bind the key.
    await shell.refuses(home, [409, "illegal_transition"], () =>
      verify(late.id, url, { as, key: "late" }, shell),
    );
    released.resolve();
    expect((await running).body.state).toBe("released");
    expect(shell.balance(home)).toEqual({ available: 999_900n, held: 0n, paid: 100n });
  } finally {
    await shell.close();
  }
});

describe("invalid source URLs", () => {
  const wrong: readonly [name: string, body: unknown][] = [
    ["none", {}],
    ["null", { source_url: null }],
    ["empty", { source_url: "" }],
    ["a path", { source_url: "/etc/passwd" }],
    ["no scheme", { source_url: "source.example/x" }],
    ["file", { source_url: "file:///etc/passwd" }],
    ["ftp", { source_url: "ftp://source.example/" }],
    ["data", { source_url: "data:application/json,{}" }],
    ["s3", { source_url: "s3://bucket/key" }],
    ["javascript", { source_url: "javascript:alert(1)" }],
    ["credentials", { source_url: "http://user:secret@source.example/" }],
    ["a user alone", { source_url: "http://user@source.example/" }],
    ["2,049 characters", { source_url: `http://source.example/${"x".repeat(2_049 - 22)}` }],
    ["10,000 characters", { source_url: `http://source.example/${"x".repeat(10_000)}` }],
    ["a blank before", { source_url: " http://source.example/" }],
    ["a line end inside", { source_url: "http://source.example/\r\nHost: other" }],
    ["no host", { source_url: "http://" }],
    ["a port out of range", { source_url: "http://source.example:99999/" }],
    ["a broken address", { source_url: "http://[::1/" }],
    ["an array", { source_url: ["http://source.example/"] }],
    ["a field too many", { source_url: "http://source.example/", method: "POST" }],
  ];
  for (const [name, body] of wrong) {
    test(name, async () => {
      const home = await service.organisation();
      const { id } = await service.opened(home);
      const path = `/v1/warrants/${id}/verify`;
      const key = `url-${name}`;
      await service.refuses(home, [400, "validation_failed"], () =>
        service.post(path, body, { as: home.live.as, key }),
      );
      const good = await service.post(path, { source_url: source.gives("{}") }, { as: home.live.as, key });
      expect(good.body.state).toBe("released");
    });
  }
});
