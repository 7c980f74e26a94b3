import { afterEach, beforeEach, expect, test } from "bun:test";
import { connect } from "node:net";
import { setAgentStatus } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import type { Json } from "../support/client.ts";
import { makeOrganisation, must } from "../support/organisations.ts";
import { openServerFolder, type ServerFolder, type ServerProcess } from "../support/server-process.ts";
import { type Source, startSource } from "../support/source.ts";
import { until } from "../support/until.ts";

/** What a crash leaves behind, and what a stop waits for. The server is a process of its own. */

const PROCESS_TIMEOUT_MS = 30_000;

let folder: ServerFolder;
let source: Source;
beforeEach(async () => {
  source = startSource();
  folder = await openServerFolder();
});
afterEach(async () => {
  await folder.close();
  source.stop();
});

const open = (overrides: object = {}) => ({
  amount: "100",
  payee: "acme",
  deadline: new Date(Date.now() + 3_600_000).toISOString(),
  spec: { clauses: [{ kind: "http.status", equals: 200 }] },
  ...overrides,
});

const takesConnections = ({ url }: ServerProcess): Promise<boolean> =>
  fetch(`${url}/healthz`, { headers: { Connection: "close" } }).then(
    () => true,
    () => false,
  );

test(
  "kill -9 in the middle of a verify: held again by the system, its key is free, and the audit finds nothing",
  async () => {
    const first = await folder.start("60");
    const home = await makeOrganisation(folder.ctx, first.client);
    const { as } = home.live;
    const doomed = await home.addAgent();
    const key = "verify-once";
    const openedAs = async (overrides: object, credentials = as): Promise<Json> => {
      const reply = await first.client.post("/v1/warrants", open(overrides), { as: credentials });
      expect(reply.status).toBe(201);
      return reply.body;
    };
    const warrant = await openedAs({});
    const frozen = await openedAs({ agent_id: doomed.id }, doomed.as);
    const untouched = await openedAs({});
    const [held, heldToo] = [source.holds(), source.holds()];
    const path = `/v1/warrants/${warrant.id}/verify`;
    const cutOff = [
      first.client.post(path, { source_url: held.url }, { as, key }),
      first.client.post(`/v1/warrants/${frozen.id}/verify`, { source_url: heldToo.url }, { as: doomed.as }),
    ].map((verify) => verify.then(() => "answered").catch(() => "cut off"));
    await Promise.all([held.arrived, heldToo.arrived]);
    const busy = await first.client.post(path, { source_url: held.url }, { as, key });
    expect(busy.code).toBe("idempotency_in_flight");
    must(await setAgentStatus(folder.ctx, MACHINE, { agent_id: doomed.id, status: "killed" }));
    expect(await first.end("SIGKILL")).toBeNull();
    expect(await Promise.all(cutOff)).toEqual(["cut off", "cut off"]);

    const second = await folder.start("60");
    const read = async (id: string): Promise<Json> => {
      const [{ body }, trace] = [
        await second.client.get(`/v1/warrants/${id}`, { as }),
        await second.client.get(`/v1/warrants/${id}/trace`, { as }),
      ];
      return { ...body, moves: trace.body.data.map(({ to, actor }: Json) => `${to} by ${actor.kind}`) };
    };
    expect(await read(warrant.id)).toMatchObject({
      state: "held",
      version: 3,
      settled_at: null,
      moves: ["held by agent", "verifying by agent", "held by system"],
    });
    expect(await read(frozen.id)).toMatchObject({
      state: "frozen",
      version: 3,
      moves: ["held by agent", "verifying by agent", "frozen by system"],
    });
    expect(await read(untouched.id)).toMatchObject({ state: "held", version: 1 });
    expect(await folder.ctx.store.audit()).toEqual([]);
    const escalations = await second.client.get("/v1/console/escalations", { as: home.people.viewer.as });
    expect(escalations.body.data).toMatchObject([
      { warrant_id: frozen.id, check_id: null, score: null, reason_codes: ["agent_killed"], status: "open" },
    ]);
    // An interrupted check does not count as a failure.
    expect(folder.ctx.reader.agents.get(doomed.id)?.failureCount).toBe(0);

    // The retry of the very same request decides, now that the source answers.
    held.release("{}");
    const retried = await second.client.post(path, { source_url: held.url }, { as, key });
    expect([retried.status, retried.body.state, retried.body.version]).toEqual([200, "released", 5]);
    expect(retried.headers.get("idempotent-replayed")).toBeNull();
    expect(await second.end("SIGTERM")).toBe(0);
    expect(await folder.ctx.store.audit()).toEqual([]);
  },
  PROCESS_TIMEOUT_MS,
);

test(
  "SIGTERM lets a running verify finish and answers it, accepts no new request, and exits 0 within 10 s",
  async () => {
    const server = await folder.start("60");
    const home = await makeOrganisation(folder.ctx, server.client);
    const { as } = home.live;
    const opened = await server.client.post("/v1/warrants", open(), { as });
    const held = source.holds();
    const running = server.client.post(
      `/v1/warrants/${opened.body.id}/verify`,
      { source_url: held.url },
      { as },
    );
    await held.arrived;
    const startedAt = performance.now();
    const ended = server.end("SIGTERM");
    // The signal has arrived once the server takes no new connection.
    await until("it takes no new connection", async () => !(await takesConnections(server)));
    held.release("{}");
    const reply = await running;
    expect([reply.status, reply.body.state]).toEqual([200, "released"]);
    expect(await ended).toBe(0);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    expect(folder.ctx.reader.warrants.find(opened.body.id)?.state).toBe("released");
    expect(await folder.ctx.store.audit()).toEqual([]);
  },
  PROCESS_TIMEOUT_MS,
);

test(
  "SIGTERM lets a running verify finish also where its client has left, and waits for no half-sent request",
  async () => {
    const server = await folder.start("60");
    const home = await makeOrganisation(folder.ctx, server.client);
    const { as } = home.live;
    const opened = await server.client.post("/v1/warrants", open(), { as });
    const held = source.holds();
    const left = new AbortController();
    const running = fetch(`${server.url}/v1/warrants/${opened.body.id}/verify`, {
      method: "POST",
      headers: { ...as, "Content-Type": "application/json", "Idempotency-Key": "left" },
      body: JSON.stringify({ source_url: held.url }),
      signal: left.signal,
    }).catch(() => "left");
    await held.arrived;
    left.abort();
    expect(await running).toBe("left");
    const written = Promise.withResolvers<void>();
    const halfSent = connect(Number(new URL(server.url).port), "127.0.0.1", () =>
      halfSent.write("GET / HT", () => written.resolve()),
    );
    halfSent.on("error", () => {});
    await written.promise;
    // Connections are taken in turn: once a later one is answered, the half-sent request has arrived.
    expect(await takesConnections(server)).toBe(true);
    const startedAt = performance.now();
    const ended = server.end("SIGTERM");
    await until("it takes no new connection", async () => !(await takesConnections(server)));
    held.release("{}");
    expect(await ended).toBe(0);
    expect(performance.now() - startedAt).toBeLessThan(9_000);
    expect(folder.ctx.reader.warrants.find(opened.body.id)?.state).toBe("released");
    expect(await folder.ctx.store.audit()).toEqual([]);
  },
  PROCESS_TIMEOUT_MS,
);

test.each(["SIGTERM", "SIGINT"] as const)(
  "%s to the whole process group, as Ctrl-C sends it, in the middle of the clauses: the check is decided as ever",
  async (signal) => {
    const token = "the-token-of-a-prometheus";
    const server = await folder.start("60", { METRICS_TOKEN: token }, true);
    const home = await makeOrganisation(folder.ctx, server.client);
    const { as } = home.live;
    // Each clause looks at every pair of 250 items. Together they take some seconds, each far less than its own second, also on
    // a busy machine.
    const clauses = Array(64).fill({ kind: "json.jsonpath", path: "$[?count($[?@.id > 1]) > 1]" });
    const opened = await server.client.post("/v1/warrants", open({ spec: { clauses } }), { as });
    expect(opened.status).toBe(201);
    const source_url = source.gives(Array.from({ length: 250 }, (_, id) => ({ id })));
    const running = server.client.post(`/v1/warrants/${opened.body.id}/verify`, { source_url }, { as });
    await until("a child is busy", async () => {
      const figures = await fetch(`${server.url}/metrics`, { headers: { Authorization: `Bearer ${token}` } });
      return (await figures.text()).includes('holdfast_evaluator_busy{pool="verify"} 1');
    });
    // Waits until the child has begun the clauses; nothing outside shows when that is.
    await Bun.sleep(200);
    const ended = server.end(signal);
    const reply = await running;
    expect([reply.status, reply.body.state]).toEqual([200, "released"]);
    expect(await ended).toBe(0);
    expect(await folder.ctx.store.audit()).toEqual([]);
  },
  PROCESS_TIMEOUT_MS,
);

test(
  "SIGTERM does not wait for a source that hangs: after 10 s the process ends, and the next start undoes the check",
  async () => {
    const server = await folder.start("60");
    const home = await makeOrganisation(folder.ctx, server.client);
    const { as } = home.live;
    const opened = await server.client.post("/v1/warrants", open(), { as });
    const path = `/v1/warrants/${opened.body.id}`;
    const held = source.holds();
    const running = server.client.post(`${path}/verify`, { source_url: held.url }, { as, key: "cut" });
    const cutOff = running.then(() => "answered").catch(() => "cut off");
    await held.arrived;
    const startedAt = performance.now();
    const ended = await Promise.race([server.end("SIGTERM"), Bun.sleep(15_000).then(() => "still running")]);
    expect([ended, await cutOff]).toEqual([0, "cut off"]);
    expect(performance.now() - startedAt).toBeLessThan(13_000);
    const next = await folder.start("60");
    expect((await next.client.get(path, { as })).body).toMatchObject({ state: "held", version: 3 });
    held.release("{}");
    const retried = await next.client.post(`${path}/verify`, { source_url: held.url }, { as, key: "cut" });
    expect([retried.status, retried.body.state]).toEqual([200, "released"]);
    expect(await folder.ctx.store.audit()).toEqual([]);
  },
  PROCESS_TIMEOUT_MS,
);
