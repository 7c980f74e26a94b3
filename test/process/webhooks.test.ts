import { afterEach, beforeEach, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createVault } from "../../src/platform/vault.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createWebhook, type NewWebhook } from "../../src/services/admin/webhooks.ts";
import { openAllRows } from "../support/all-rows.ts";
import type { Json } from "../support/client.ts";
import { ENGINE } from "../support/engine.ts";
import { makeOrganisation, must, type TestOrganisation } from "../support/organisations.ts";
import { createJudge, type Receiver, startReceiver } from "../support/receiver.ts";
import { openServerFolder, type ServerFolder, type ServerProcess } from "../support/server-process.ts";
import { until } from "../support/until.ts";

/** The running service with its scheduler, a worker beside it, and the deliveries after a crash. */

const PROCESS_TIMEOUT_MS = 30_000;
const SECRET = "worker-secret-of-a-test";

let folder: ServerFolder;
let receiver: Receiver;
beforeEach(async () => {
  receiver = startReceiver();
  folder = await openServerFolder();
});
afterEach(async () => {
  await folder.close();
  receiver.stop();
});

const endpoint = (home: TestOrganisation, path = "/", ctx = folder.ctx): Promise<NewWebhook> =>
  createWebhook(ctx, MACHINE, {
    organisation_id: home.id,
    mode: "live",
    url: receiver.url(path),
  }).then(must);

async function open({ client }: ServerProcess, { live }: TestOrganisation): Promise<Json> {
  const body = {
    amount: "100",
    payee: "acme",
    deadline: new Date(Date.now() + 3_600_000).toISOString(),
    spec: { clauses: [{ kind: "http.status", equals: 200 }] },
  };
  const reply = await client.post("/v1/warrants", body, { as: live.as });
  expect(reply.status).toBe(201);
  return reply.body;
}
/** The deliveries as the console lists them, once none is under way. */
async function settled({ client }: ServerProcess, { people }: TestOrganisation): Promise<readonly Json[]> {
  return until("all deliveries have arrived", async () => {
    const { body } = await client.get("/v1/console/webhooks", { as: people.admin.as });
    return body.deliveries.every(({ status }: Json) => status === "delivered") && body.deliveries;
  });
}

test(
  "the service's own job and a worker at once: every attempt arrives once, in order, and is accepted",
  async () => {
    const server = await folder.start("1", { WORKER_SECRET: SECRET });
    const home = await makeOrganisation(folder.ctx, server.client);
    const { secret } = await endpoint(home);
    let driving = true;
    const drive = async (): Promise<number> => {
      let attempted = 0;
      while (driving) {
        const headers = { "X-Service-Worker": SECRET };
        const reply = await server.client.post("/internal/jobs/webhooks", undefined, { headers, key: null });
        expect(reply.status).toBe(200);
        attempted += reply.body.attempted;
      }
      return attempted;
    };
    const drivers = [drive(), drive()];
    const warrants = [];
    for (let count = 0; count < 40; count++) {
      const { id } = await open(server, home);
      warrants.push(id);
      await server.client.post(`/v1/warrants/${id}/refund`, undefined, { as: home.people.operator.as });
    }
    await receiver.whenReceived(80);
    expect(await settled(server, home)).toHaveLength(50);
    driving = false;
    await Promise.all(drivers);
    const judge = createJudge(secret);
    expect(receiver.received.map((one) => judge(one, Date.now()))).toEqual(Array(80).fill("accepted"));
    for (const id of warrants) {
      const its = receiver.received.filter(({ body }) => body.data.warrant_id === id);
      expect(its.map(({ body, attempt }) => [body.type, attempt])).toEqual([
        ["warrant.opened", 1],
        ["warrant.refunded", 1],
      ]);
    }
    expect(await server.end("SIGTERM")).toBe(0);
  },
  PROCESS_TIMEOUT_MS,
);

test(
  "kill -9 in the middle: the attempt that was cut off counts, and the schedule goes on in the next process",
  async () => {
    const first = await folder.start("1");
    const home = await makeOrganisation(folder.ctx, first.client);
    await endpoint(home, "/hangs");
    await endpoint(home, "/fails");
    receiver.answer(({ path, attempt }) => {
      if (attempt > 1) return new Response("ok");
      return path === "/fails" ? new Response("", { status: 500 }) : new Promise<Response>(() => {});
    });
    await open(first, home);
    await receiver.whenReceived(2);
    expect(await first.end("SIGKILL")).toBeNull();

    const restartedAt = Date.now();
    const second = await folder.start("1");
    await receiver.whenReceived(4);
    const deliveries = await settled(second, home);
    expect(deliveries.map(({ status, attempts }) => [status, attempts])).toEqual([
      ["delivered", 2],
      ["delivered", 2],
    ]);
    const came = (path: string) =>
      receiver.received.filter((one) => one.path === path).map(({ attempt }) => attempt);
    expect([came("/hangs"), came("/fails")]).toEqual([
      [1, 2],
      [1, 2],
    ]);
    // The start ends the attempt that was cut off; the next one comes a second after that.
    expect(Date.now() - restartedAt).toBeGreaterThan(1_000);
    expect(await folder.ctx.store.audit()).toEqual([]);
    expect(await second.end("SIGTERM")).toBe(0);
  },
  // Where other servers may use the ledger, an attempt is theirs 30 s after its begin.
  2 * PROCESS_TIMEOUT_MS,
);

test(
  "the whole schedule across a kill -9: attempts at 0, 1, 6 and 31 s, then exhausted, and never again",
  async () => {
    const first = await folder.start("1");
    const home = await makeOrganisation(folder.ctx, first.client);
    await endpoint(home);
    const came: number[] = [];
    receiver.answer(() => {
      came.push(performance.now());
      return new Response("", { status: 500 });
    });
    await open(first, home);
    const scope = { organisationId: home.id, mode: "live" } as const;
    const read = () => folder.ctx.reader.deliveries.list(scope, 1)[0];
    await receiver.whenReceived(2);
    await until(
      "the second failure is recorded",
      () => read()?.attempts === 2 && read()?.claimedUntil === null,
    );
    await first.end("SIGKILL");
    const killedAt = performance.now();
    const second = await folder.start("1");
    const startSeconds = (performance.now() - killedAt) / 1_000;
    await receiver.whenReceived(4);
    await until("the last failure is recorded", () => read()?.status === "exhausted");
    expect(read()).toMatchObject({ attempts: 4, responseCode: 500, nextAttemptAt: null, claimedUntil: null });
    const gaps = came.slice(1).map((time, index) => (time - came[index]!) / 1_000);
    for (const [index, wait] of [1, 5, 25].entries())
      expect(gaps[index]).toBeWithin(wait - 0.05, wait + 1.5 + startSeconds);
    await second.end("SIGKILL");
    const third = await folder.start("1");
    // A delivery that is due would be sent before the events of this open.
    await open(third, home);
    await receiver.whenReceived(5);
    const { delivery } = receiver.received[0]!;
    expect(
      receiver.received.filter((one) => one.delivery === delivery).map(({ attempt }) => attempt),
    ).toEqual([1, 2, 3, 4]);
    await third.end("SIGTERM");
  },
  2 * PROCESS_TIMEOUT_MS,
);

test(
  "SIGTERM lets an attempt under way end, starts none, and waits ten seconds at most",
  async () => {
    const server = await folder.start("1");
    const home = await makeOrganisation(folder.ctx, server.client);
    await endpoint(home);
    const answer = Promise.withResolvers<void>();
    receiver.answer(async () => {
      await answer.promise;
      return new Response("ok");
    });
    await open(server, home);
    await receiver.whenReceived(1);
    const ended = server.end("SIGTERM");
    for (let listens = true; listens; )
      listens = await fetch(`${server.url}/healthz`, { headers: { Connection: "close" } }).then(
        () => true,
        () => false,
      );
    answer.resolve();
    expect(await ended).toBe(0);
    const scope = { organisationId: home.id, mode: "live" } as const;
    expect(folder.ctx.reader.deliveries.list(scope, 5)).toMatchObject([{ status: "delivered", attempts: 1 }]);
  },
  PROCESS_TIMEOUT_MS,
);

test(
  "a master key that is given signs, and neither it nor any secret is kept in clear text",
  async () => {
    const masterKey = Buffer.alloc(32, 5);
    const text = masterKey.toString("base64");
    const server = await folder.start("1", { MASTER_KEY: text, WORKER_SECRET: SECRET });
    const home = await makeOrganisation(folder.ctx, server.client);
    const given = { ...folder.ctx, vault: createVault(masterKey) };
    const { secret } = await endpoint(home, "/", given);
    await open(server, home);
    await receiver.whenReceived(1);
    expect(createJudge(secret)(receiver.received[0]!, Date.now())).toBe("accepted");
    await server.end("SIGTERM");
    const names = readdirSync(folder.folder);
    const made = ENGINE === "embedded" ? ["backup.key", "push.key", "signing.key", "witness.key"] : [];
    expect(names.filter((name) => name.endsWith(".key")).sort()).toEqual(made);
    const rows = openAllRows(folder.folder);
    const kept = [
      ...names.map((name) => [name, readFileSync(join(folder.folder, name)).toString("latin1")] as const),
      ...Object.entries(rows.all()).map(
        ([table, found]) => [table, Bun.inspect(found, { depth: 9 })] as const,
      ),
    ];
    rows.close();
    for (const [name, content] of kept)
      for (const hidden of [secret, text, SECRET])
        expect([name, content.includes(hidden)]).toEqual([name, false]);
  },
  PROCESS_TIMEOUT_MS,
);
