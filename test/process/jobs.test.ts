import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { sendExample } from "../../src/services/admin/deliveries.ts";
import { createWebhook } from "../../src/services/admin/webhooks.ts";
import { databaseSettings } from "../support/database-settings.ts";
import { ENGINE } from "../support/engine.ts";
import { makeOrganisation, must } from "../support/organisations.ts";
import { createJudge, type Receiver, startReceiver } from "../support/receiver.ts";
import { openServerFolder, type ServerFolder } from "../support/server-process.ts";

/** The jobs of a running server, and those that are run by hand beside it. */

const MAIN = resolve(import.meta.dir, "../../src/main.ts");
const PROCESS_TIMEOUT_MS = 30_000;
const METRICS_TOKEN = "the-token-of-a-prometheus";

let folder: ServerFolder;
let receiver: Receiver;
beforeEach(async () => {
  folder = await openServerFolder();
  receiver = startReceiver();
});
afterEach(async () => {
  await folder.close();
  receiver.stop();
});

const endpointOf = (organisationId: string, events?: readonly string[]) =>
  createWebhook(folder.ctx, MACHINE, {
    organisation_id: organisationId,
    mode: "live",
    url: receiver.url(),
    ...(events && { events }),
  }).then(must);

const bodyWith = (deadline: number) => ({
  amount: "1", // so little that the funds outlast a loop of opens on any machine
  payee: "acme",
  deadline: new Date(deadline).toISOString(),
  spec: { clauses: [{ kind: "http.status", equals: 200 }] },
});

const deliveries = (organisationId: string) =>
  folder.ctx.reader.deliveries.list({ organisationId, mode: "live" }, 10);

type Environment = Readonly<Record<string, string>>;

/** Runs a command on the folder: its exit code, what it prints, and what it logs. */
async function command(args: readonly string[], environment: Environment = {}) {
  const child = Bun.spawn([process.execPath, MAIN, ...args, "--json"], {
    env: {
      ...databaseSettings(folder.folder),
      HOLDFAST_DATA: folder.folder,
      HOLDFAST_ALLOW_NETWORKS: "127.0.0.0/8",
      ...environment,
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, log, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, out, log };
}

/** Runs a command that must succeed, and gives its answer. */
async function holdfast(args: readonly string[], environment: Environment = {}) {
  const { code, out, log } = await command(args, environment);
  expect([code, code === 0 ? "" : log]).toEqual([0, ""]);
  return { said: JSON.parse(out), log };
}

async function byHand(job: string, environment: Environment = {}) {
  const { said, log } = await holdfast(["jobs", "run", job], environment);
  return { done: said.done as number, log };
}

const JOBS = [
  ...[
    "agents",
    "anchor",
    "audit",
    "deadlines",
    "key-uses",
    "ledger",
    "lost-events",
    "notices",
    "payments",
    "purchases",
    "recover",
    "reminders",
  ],
  ...["retention", "sign-in-failures", "troubles", "webhooks"],
  ...(ENGINE === "embedded" ? ["wal-checkpoint"] : ["rates", "shared-memory"]),
];

test(
  "the server has all of its jobs, and with a folder for backups, which the embedded engine has, that one too",
  async () => {
    const backups = join(folder.folder, "backups");
    mkdirSync(backups);
    const withBackups = ENGINE === "embedded" ? [{ BACKUP_FOLDER: backups }] : [];
    for (const settings of [{}, ...withBackups]) {
      const expected = "BACKUP_FOLDER" in settings ? [...JOBS, "backup"] : JOBS;
      const server = await folder.start("1", { METRICS_TOKEN, ...settings });
      const metrics = await fetch(`${server.url}/metrics`, {
        headers: { authorization: `Bearer ${METRICS_TOKEN}` },
      });
      const text = await metrics.text();
      for (const series of ["runs_total", "stuck", "lag_seconds"]) {
        const named = [...text.matchAll(new RegExp(`^holdfast_job_${series}\\{job="([^"]+)"\\}`, "gm"))];
        expect(named.map(([, job]) => job ?? "").sort()).toEqual(expected.toSorted());
      }
      // The backup folder was not read yet. A figure now would cause an alert at every start.
      expect(text).not.toMatch(/^holdfast_backup_newest_timestamp_seconds/m);
      expect(await server.end("SIGTERM")).toBe(0);
    }
  },
  PROCESS_TIMEOUT_MS,
);

test(
  "under load a warrant expires within a second of its deadline, and never before",
  async () => {
    const server = await folder.start("1");
    const home = await makeOrganisation(folder.ctx, server.client);
    await endpointOf(home.id, ["warrant.refunded"]);
    const open = async (deadline: number): Promise<number> => {
      const reply = await server.client.post("/v1/warrants", bodyWith(deadline), { as: home.live.as });
      return reply.status;
    };
    let loaded = true;
    const load = Array.from({ length: 4 }, async () => {
      while (loaded) expect(await open(Date.now() + 3_600_000)).toBe(201);
    });
    const first = Date.now() + 1_500;
    const deadlines = Array.from({ length: 20 }, (_, index) => first + 50 * index);
    expect(await Promise.all(deadlines.map(open))).toEqual(deadlines.map(() => 201));
    const events = (await receiver.whenReceived(20)).map(({ body }) => body);
    loaded = false;
    await Promise.all(load);
    const expired = events.map(({ data, created_at }) => {
      const { deadline } = folder.ctx.reader.warrants.find(data.warrant_id)!;
      expect([data.to, deadlines]).toEqual(["expired", expect.arrayContaining([deadline])]);
      return Date.parse(created_at) - deadline;
    });
    for (const lateMs of expired) expect(lateMs).toBeWithin(0, 1_000);
    expect(await server.end("SIGTERM")).toBe(0);
  },
  PROCESS_TIMEOUT_MS,
);

test(
  "webhooks by hand beside the server, in three processes at once: every attempt arrives once",
  async () => {
    const server = await folder.start("1");
    const home = await makeOrganisation(folder.ctx, server.client);
    const { secret } = await endpointOf(home.id);
    receiver.answer(({ attempt }) => new Response("", { status: attempt === 1 ? 500 : 200 }));
    let driving = true;
    const drivers = [1, 2, 3].map(async () => {
      let done = 0;
      while (driving) done += (await byHand("webhooks")).done;
      return done;
    });
    for (let count = 0; count < 60; count++) {
      const reply = await server.client.post("/v1/warrants", bodyWith(Date.now() + 3_600_000), {
        as: home.live.as,
      });
      expect(reply.status).toBe(201);
      // In so many turns that the server sends some of the events, and the commands send others.
      await Bun.sleep(20);
    }
    await receiver.whenReceived(120);
    driving = false;
    const done = await Promise.all(drivers);
    const judge = createJudge(secret);
    expect(receiver.received.map((one) => judge(one, Date.now()))).toEqual(Array(120).fill("accepted"));
    // The server and the commands each sent some.
    expect(done.reduce((sum, one) => sum + one)).toBeWithin(1, 120);
    expect(await folder.ctx.store.audit()).toEqual([]);
  },
  PROCESS_TIMEOUT_MS,
);

test(
  "without a server webhooks by hand send what is due, signed with the folder's key or the one that is given",
  async () => {
    const server = await folder.start("1");
    const home = await makeOrganisation(folder.ctx, server.client);
    await server.end("SIGKILL");
    const { id, secret } = await endpointOf(home.id);
    must(await sendExample(folder.ctx, MACHINE, { webhook_id: id }));
    expect((await byHand("webhooks")).done).toBe(1);
    expect(receiver.received.map((one) => createJudge(secret)(one, Date.now()))).toEqual(["accepted"]);
    expect(await byHand("webhooks")).toEqual({ done: 0, log: "" });
    await holdfast(["webhooks", "disable", id]);
    const given = { HOLDFAST_MASTER_KEY: Buffer.alloc(32, 5).toString("base64") };
    const other = ["--organisation", home.id, "--mode", "live", "--url", receiver.url("/given")];
    const { said } = await holdfast(["webhooks", "create", ...other], given);
    must(await sendExample(folder.ctx, MACHINE, { webhook_id: said.id }));
    expect(await byHand("webhooks", given)).toEqual({ done: 1, log: "" });
    expect(createJudge(said.secret)(receiver.received[1]!, Date.now())).toBe("accepted");
    expect(await byHand("reminders")).toEqual({ done: 0, log: "" });
  },
  PROCESS_TIMEOUT_MS,
);

test(
  "webhooks by hand without the server's key are refused before anything is begun; disabled endpoints need none",
  async () => {
    const given = { HOLDFAST_MASTER_KEY: Buffer.alloc(32, 5).toString("base64") };
    const server = await folder.start("1", { MASTER_KEY: given.HOLDFAST_MASTER_KEY });
    const home = await makeOrganisation(folder.ctx, server.client);
    expect(await server.end("SIGTERM")).toBe(0);
    const { said } = await holdfast(
      ["webhooks", "create", "--organisation", home.id, "--mode", "live", "--url", receiver.url()],
      given,
    );
    must(await sendExample(folder.ctx, MACHINE, { webhook_id: said.id }));
    const untouched = deliveries(home.id);
    expect(untouched).toMatchObject([{ status: "pending", attempts: 0 }]);
    const other = { HOLDFAST_MASTER_KEY: Buffer.alloc(32, 6).toString("base64") };
    for (const environment of [{}, other]) {
      const { code, out, log } = await command(["jobs", "run", "webhooks"], environment);
      expect([code, out]).toEqual([1, ""]);
      const { error } = JSON.parse(log);
      expect(error).toMatchObject({
        code: "validation_failed",
        message: expect.stringMatching(
          new RegExp(`^HOLDFAST_MASTER_KEY: is not .*: nothing could be sent to ${said.id}`),
        ),
      });
      expect(deliveries(home.id)).toEqual(untouched);
    }
    expect(await byHand("deadlines")).toEqual({ done: 0, log: "" });
    expect(await byHand("webhooks", given)).toEqual({ done: 1, log: "" });
    await holdfast(["webhooks", "disable", said.id]);
    expect(await byHand("webhooks")).toEqual({ done: 0, log: "" });
  },
  PROCESS_TIMEOUT_MS,
);

test(
  "webhooks by hand never reach the address that the service is configured to listen at",
  async () => {
    const server = await folder.start("1");
    const home = await makeOrganisation(folder.ctx, server.client);
    await server.end("SIGTERM");
    const { id } = await endpointOf(home.id);
    must(await sendExample(folder.ctx, MACHINE, { webhook_id: id }));
    const itself = { HOLDFAST_PORT: String(receiver.port) };
    expect((await byHand("webhooks", itself)).done).toBe(1);
    expect(receiver.received).toEqual([]);
    expect(deliveries(home.id)).toMatchObject([{ status: "failed", attempts: 1, responseCode: null }]);
  },
  PROCESS_TIMEOUT_MS,
);
