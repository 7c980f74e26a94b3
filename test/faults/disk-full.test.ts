import { Database } from "bun:sqlite";
import { expect, spyOn } from "bun:test";
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sweepDeadlines } from "../../src/jobs/deadlines.ts";
import { recoverOverdueChecks } from "../../src/jobs/recover.ts";
import { CHECK_LEASE_MS } from "../../src/services/warrants/interrupt.ts";
import { createProgram, type Program, type Server, SOURCE } from "../crash/program.ts";
import { createClient, type Reply } from "../support/client.ts";
import { type FailingInSqlite, watchSqlite } from "../support/failing-in-sqlite.ts";
import { noFault } from "../support/no-fault.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
import { type ShellService, startTestShell } from "../support/server.ts";
import { until } from "../support/until.ts";

const { afterAll, afterEach, beforeAll, beforeEach, describe, test } = onlyEmbedded(import.meta.path);

/** On a full disk, requests that must write are refused, and nothing is lost. It ends when there is space again. */

const FULL = "database or disk is full";
/** A spec that is too long for the free space of any page. */
const CLAUSES = Array.from({ length: 64 }, (_, index) => ({
  kind: "json.jsonpath",
  path: `$.${`a long name ${index}`.replaceAll(" ", "_").repeat(20)}`,
}));
const answerOf = ({ status, code, text }: Reply) => [status, code, text.includes("disk")];
const REFUSED = [500, "internal_error", false];

describe("a ledger that may not grow", () => {
  /** SQLite's own limit, far above any ledger. */
  const PAGES_MAX = 4_294_967_294;

  let statements: FailingInSqlite;
  let printed: ReturnType<typeof spyOn>;
  let service: ShellService;
  const gate = { arrived: Promise.withResolvers<void>(), opens: Promise.withResolvers<void>() };
  beforeEach(() => {
    statements = watchSqlite();
    printed = spyOn(console, "error").mockImplementation(() => {});
    service = startTestShell();
    const { fetchEvidence } = service.ctx;
    Object.assign(service.ctx, {
      fetchEvidence: async (...asked: Parameters<typeof fetchEvidence>) => {
        gate.arrived.resolve();
        await gate.opens.promise;
        return fetchEvidence(...asked);
      },
    });
  });
  afterEach(async () => {
    statements.restore();
    printed.mockRestore();
    await service.close();
  });

  test("refuses with 500, keeps what was acknowledged, and goes on when it may grow again", async () => {
    const home = await service.organisation();
    const { as } = home.live;
    const writer: Database = statements.writers.at(-1)!;
    const small = service.body();
    const large = service.body({ spec: { clauses: CLAUSES } });
    const overdue = await service.opened(home, { deadline: service.timeIn(1_000) });
    const checked = await service.opened(home, { spec: { clauses: CLAUSES } });
    const path = `/v1/warrants/${checked.id}/verify`;
    const verify = () => service.post(path, { source_url: "http://source.example/" }, { as, key: "check" });
    const checking = verify();
    await gate.arrived.promise;
    const open = (body: object, key: string) => service.post("/v1/warrants", body, { as, key });
    const acknowledged = await open(small, "acknowledged");

    writer.run("PRAGMA max_page_count = 1");
    await service.refuses(home, [500, "internal_error"], () => open(large, "refused"));
    expect(String(printed.mock.calls.at(-1))).toContain(FULL);
    gate.opens.resolve();
    expect(answerOf(await checking)).toEqual(REFUSED);
    // Reads work, and earlier answers are replayed.
    expect((await service.get(`/v1/warrants/${checked.id}`, { as })).status).toBe(200);
    expect((await open(small, "acknowledged")).text).toBe(acknowledged.text);
    expect(service.allRows(home)).toMatchObject({ checks: [], postings: { length: 5 } });
    expect(await service.ctx.store.audit()).toEqual([]);

    writer.run(`PRAGMA max_page_count = ${PAGES_MAX}`);
    expect((await open(large, "refused")).status).toBe(201);
    service.clock.now += CHECK_LEASE_MS;
    await recoverOverdueChecks(service.ctx, () => {});
    await sweepDeadlines(service.ctx, noFault);
    expect((await service.get(`/v1/warrants/${overdue.id}`, { as })).body.state).toBe("expired");
    const verified = await verify();
    expect([verified.status, verified.body.state]).toEqual([200, "escalated"]);
  });
});

/** Mounts a disk of 8 MB on a folder. Answers whether this user may. */
const mountDisk = (folder: string): boolean =>
  Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder]).success;
/** Lazily: a child of a killed server may still have a file of it open for a moment. */
const unmount = (folder: string): void => {
  expect(Bun.spawnSync(["umount", "--lazy", folder]).success).toBeTrue();
};
const emptyFolder = (): string => mkdtempSync(join(tmpdir(), "holdfast-disk-"));

function mayMount(): boolean {
  const folder = emptyFolder();
  const may = mountDisk(folder);
  if (may) unmount(folder);
  rmSync(folder, { recursive: true });
  return may;
}

describe.skipIf(!mayMount())("a server on a small disk", () => {
  const TEST_MS = 60_000;
  const METRICS_TOKEN = "the-token-of-a-prometheus";
  let root: string;
  let data: string;
  let ballast: string;
  let program: Program;
  beforeAll(() => {
    root = emptyFolder();
    data = join(root, "data");
    ballast = join(data, "ballast");
    mkdirSync(data);
    expect(mountDisk(data)).toBeTrue();
    program = createProgram(SOURCE, root, { HOLDFAST_METRICS_TOKEN: METRICS_TOKEN });
  });
  afterAll(async () => {
    await program.killAll();
    unmount(data);
    rmSync(root, { recursive: true, force: true });
  });

  /** Writes until nothing more fits. */
  function fill(): void {
    const file = openSync(ballast, "w");
    try {
      for (;;) writeSync(file, Buffer.alloc(4_096));
    } catch (error) {
      expect((error as NodeJS.ErrnoException).code).toBe("ENOSPC");
    } finally {
      closeSync(file);
    }
  }

  /** After this even the smallest commit would make the write-ahead log longer. */
  function emptyLog(): void {
    const database = new Database(join(data, "holdfast.db"));
    database.run("PRAGMA busy_timeout = 5000");
    const [outcome] = database.query<{ busy: number }, []>("PRAGMA wal_checkpoint(TRUNCATE)").all();
    database.close();
    expect(outcome?.busy).toBe(0);
  }

  /** Resolves when so many runs of the job have failed. */
  async function jobFailed({ url }: Server, job: string, times: number): Promise<void> {
    const headers = { authorization: `Bearer ${METRICS_TOKEN}` };
    const series = new RegExp(`^holdfast_job_failures_total\\{job="${job}"\\} ([0-9]+)$`, "m");
    await until(`${job} has failed ${times} times`, async () => {
      const text = await fetch(`${url}/metrics`, { headers }).then((response) => response.text());
      return Number(series.exec(text)?.[1]) >= times;
    });
  }

  test(
    "refuses with 500 and says why in its log; needs no restart when there is space, and starts without",
    async () => {
      const { organisation } = await program.command(
        ...["organisations", "create", "--name", "Small", "--owner-email", "owner@example.com"],
        ...["--owner-password", "correct horse battery staple"],
      );
      const account = ["--organisation", organisation.id, "--mode", "live"];
      // Nobody listens there, so there is always something to deliver.
      const { id: endpoint } = await program.command(
        ...["webhooks", "create", ...account, "--url", "http://127.0.0.1:9/"],
      );
      const agent = await program.command("agents", "create", ...account, "--name", "buyer");
      const { secret } = await program.command("keys", "create", "--agent", agent.id);
      await program.command("balances", "fund", ...account, "--amount", "1000");
      const body = {
        amount: "100",
        payee: "acme",
        deadline: new Date(Date.now() + 3_600_000).toISOString(),
        spec: { clauses: CLAUSES },
      };
      let server = await program.serve();
      const client = () =>
        createClient(fetch, server.url, `http://localhost:${new URL(server.url).port}/docs`);
      const as = { authorization: `Bearer ${secret}` };
      const open = (key: string) => client().post("/v1/warrants", body, { as, key });
      const listed = async () => (await client().get("/v1/warrants", { as })).body.data.length;
      const first = await open("first");

      // The second attempt is due a second later.
      while ((await program.command("webhooks", "deliveries", endpoint)).data[0].status !== "failed");
      emptyLog();
      fill();
      for (const key of ["second", "third"]) expect(answerOf(await open(key))).toEqual(REFUSED);
      expect((await open("first")).text).toBe(first.text);
      expect(await listed()).toBe(1);
      await jobFailed(server, "webhooks", 5);
      const faults = program.faults().map((line) => JSON.parse(line));
      for (const { error } of faults) expect(error).toContain(FULL);
      // A job that fails ten times a second is logged once a minute.
      const kinds = faults.map(({ message, job }) => [message, job].join(" ").trim());
      expect(kinds.filter((kind) => kind === "request failed")).toHaveLength(2);
      expect(kinds.filter((kind) => kind === "job failed webhooks")).toHaveLength(1);
      rmSync(ballast);
      expect((await open("second")).status).toBe(201);

      emptyLog();
      fill();
      await server.kill();
      server = await program.serve();
      expect(answerOf(await open("third"))).toEqual(REFUSED);
      expect(await listed()).toBe(2);
      rmSync(ballast);
      expect((await open("third")).status).toBe(201);
      expect((await open("first")).text).toBe(first.text);
      expect((await program.command("balances", "show", ...account)).balances).toEqual([
        { asset: "USDC", available: "700", held: "300", paid: "0" },
      ]);
      expect((await program.command("audit")).problems).toEqual([]);
    },
    TEST_MS,
  );
});
