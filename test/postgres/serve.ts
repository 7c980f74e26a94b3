/** A server whose ledger is in a database: it needs no folder, and says how the database does (docs/postgresql, "Watch it"). */
import { afterAll, beforeAll, expect, spyOn, test } from "bun:test";
import { createPublicKey } from "node:crypto";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { openForCommands } from "../../src/app/ledger.ts";
import { startServer } from "../../src/app.ts";
import { type Config, NO_SECRETS, readConfig, type Secrets } from "../../src/config.ts";
import { isRefusal } from "../../src/core/errors.ts";
import { newSigningKey } from "../../src/platform/tokens.ts";
import { anchor } from "../../src/services/log/anchor.ts";
import { parsePostgresAddress } from "../../src/store/postgres/address.ts";
import type { Json } from "../support/client.ts";
import { createCommandLine } from "../support/command-line.ts";
import { readEvents } from "../support/event-stream.ts";
import { must } from "../support/organisations.ts";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import { createCaller, createStage, open, warrantIn } from "../support/stage.ts";
import { until } from "../support/until.ts";

const TEST_MS = 120_000;
const TOKEN = "the-token-of-a-prometheus";
const KEY = new Uint8Array(32).fill(7);

let postgres: Postgres;
let folder: string;
let config: Config;
let secrets: Secrets;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-serve-"));
  postgres = await startPostgres();
  config = must(readConfig({ DATA: join(folder, "data"), PORT: "0" }, {}));
  const database = parsePostgresAddress(await postgres.createDatabase());
  if ("problem" in database) throw new Error(database.problem);
  secrets = {
    ...{ ...NO_SECRETS, database, metricsToken: TOKEN, signingKey: newSigningKey() },
    ...{ masterKey: KEY, pushKey: KEY, witnessKey: KEY },
  };
}, TEST_MS);
afterAll(async () => {
  await postgres.close();
  rmSync(folder, { recursive: true, force: true });
}, TEST_MS);

/** Runs one command, as beside a server. */
async function command(...args: readonly string[]) {
  const { ctx, close } = await openForCommands(config, { ...NO_SECRETS, database: secrets.database });
  try {
    return await createCommandLine(ctx).json(...args);
  } finally {
    await close();
  }
}

test(
  "a command makes an organisation in an empty database, and another finds it; neither makes a folder",
  async () => {
    const owner = ["--owner-email", "ada@example.com", "--owner-password", "correct horse"];
    await command("organisations", "create", "--name", "Acme", ...owner);
    const listed = await command("organisations", "list");
    expect(listed.data).toEqual([expect.objectContaining({ name: "Acme" })]);
    expect(existsSync(config.data)).toBeFalse();
  },
  TEST_MS,
);

test(
  "a user who may not make the tables is told so, and starts where they are made",
  async () => {
    const { database } = secrets;
    if (!database) throw new Error("no database");
    await postgres.run("CREATE ROLE service LOGIN PASSWORD 'of-service'");
    await postgres.createDatabase();
    const service = { ...database, user: "service", password: "of-service" };
    const open = (address: typeof database) => openForCommands(config, { ...NO_SECRETS, database: address });
    await expect(open({ ...service, database: "test_2" })).rejects.toMatchObject({
      message: expect.stringMatching(
        /^HOLDFAST_DATABASE: the user may neither make the tables nor change them/,
      ),
    });
    const sql = new SQL(postgres.url(database.database), { max: 1 });
    await sql`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO service`;
    await sql`GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO service`;
    await sql.close();
    const { ctx, close } = await open(service);
    const { name } = await ctx.store.read(
      async ({ organisations }) => (await organisations.list())[0] ?? { name: null },
    );
    expect(name).toBe("Acme");
    await close();
  },
  TEST_MS,
);

test("a key that a command needs and nobody gave is refused by its setting", async () => {
  const { ctx, close } = await openForCommands(config, { ...NO_SECRETS, database: secrets.database });
  try {
    expect(() => ctx.vault.encrypt("a secret", "a name")).toThrow(
      expect.objectContaining({
        message: expect.stringContaining("HOLDFAST_MASTER_KEY: is not set, and with"),
      }),
    );
  } finally {
    await close();
  }
});

test(
  "an open page is told by name what a command has changed",
  async () => {
    // It logs the sign-in.
    const printed = spyOn(process.stderr, "write").mockReturnValue(true);
    const { url, stop } = must(await startServer(config, secrets));
    try {
      const signedIn = await fetch(`${url}/auth/session`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ email: "ada@example.com", password: "correct horse" }),
      });
      const as = { Cookie: signedIn.headers.get("set-cookie")?.split(";")[0] ?? "" };
      const page = await (await fetch(`${url}/console`, { headers: as })).text();
      const after = /data-position="([^"]+)"/.exec(page)?.[1];
      const events = await readEvents(`${url}/console/events?after=${after}`, as);
      const [{ id }]: Json = (await command("organisations", "list")).data;
      const agent: Json = await command(
        "agents",
        "create",
        "--organisation",
        id,
        "--mode",
        "live",
        "--name",
        "buyer",
      );
      const told: string[] = [];
      // A server that starts also hears of what was committed in the minute before.
      while (!told.includes(agent.id)) {
        const names = await events.nextNames();
        expect(names).not.toBeNull();
        told.push(...(names ?? []));
      }
      expect(told).toContain("agents");
      events.leave();
    } finally {
      await stop();
      printed.mockRestore();
    }
  },
  TEST_MS,
);

test(
  "a server that loses its database says so, and is ready when it is back",
  async () => {
    // Every job says that its run failed.
    const printed = spyOn(process.stderr, "write").mockReturnValue(true);
    const { url, stop } = must(await startServer(config, secrets));
    const readiness = async () => {
      const response = await fetch(`${url}/readyz`);
      const { checks }: Json = await response.json();
      const failing = checks.filter(({ ok }: Json) => !ok);
      return [response.status, ...failing.map(({ name }: Json) => name)];
    };
    const figure = async (name: string) => {
      const response = await fetch(`${url}/metrics`, { headers: { Authorization: `Bearer ${TOKEN}` } });
      const lines = (await response.text()).split("\n");
      return lines.find((line) => line.startsWith(`${name} `))?.slice(name.length + 1);
    };
    try {
      await until("the server is ready", async () => Bun.deepEquals(await readiness(), [200]));
      expect(await figure("holdfast_database_reachable")).toBe("1");
      expect(await figure("holdfast_disk_free_bytes")).toBeUndefined();
      await postgres.kill();
      await until("it is not ready", async () => (await readiness()).includes("database"));
      expect((await readiness())[0]).toBe(503);
      expect(await figure("holdfast_database_reachable")).toBe("0");
      expect(await figure("holdfast_warrants_overdue")).toBe("0");
      await postgres.start();
      await until("it is ready again", async () => Bun.deepEquals(await readiness(), [200]), 30_000);
      expect(await figure("holdfast_database_reachable")).toBe("1");
    } finally {
      await stop();
      printed.mockRestore();
    }
    expect(existsSync(config.data)).toBeFalse();
  },
  TEST_MS,
);

test(
  "a signing key that the log does not know is refused when nothing else runs, and one that names the former is taken",
  async () => {
    const database = parsePostgresAddress(await postgres.createDatabase());
    if ("problem" in database) throw new Error(database.problem);
    const former = newSigningKey();
    const start = (signingKey: string) => startServer(config, { ...secrets, database, signingKey });
    const first = must(await start(newSigningKey()));
    await first.stop();
    // Nothing was signed, so every key is a first one.
    const second = must(await start(former));
    const stage = await createStage(second.ctx);
    warrantIn(await open(stage, await createCaller(stage)));
    await anchor(second.ctx);
    await second.stop();
    const other = newSigningKey();
    const refused = await start(other);
    if (!isRefusal(refused)) {
      await refused.stop();
      throw new Error("it started");
    }
    expect(refused.message).toStartWith(
      "HOLDFAST_SIGNING_KEY: is not the key that signed checkpoint 1 of this ledger's log, and does not name it",
    );
    const publicHalf = createPublicKey(former).export({ type: "spki", format: "pem" });
    const third = must(await start(`${other}\n${publicHalf}`));
    await third.stop();
  },
  TEST_MS,
);
