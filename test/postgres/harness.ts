/** `bun run postgres`: a real PostgreSQL that tests start, kill and promote, and the proxy that breaks its connections. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { SQL } from "bun";
import { startFaultyProxy } from "../support/faulty-proxy.ts";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import { LOCALHOST_CERTIFICATE } from "../support/tls.ts";
import { until } from "../support/until.ts";
import { createConnections, through } from "./connections.ts";

const TEST_MS = 120_000;

let postgres: Postgres;
const { closing, connectTo, newProxy, closeAll } = createConnections(() => postgres.port);

beforeAll(async () => {
  postgres = await startPostgres();
}, TEST_MS);
afterAll(async () => {
  await closeAll();
  await postgres.close();
}, TEST_MS);

/** A table of one column, and a client of it. */
async function newTable(url: string): Promise<SQL> {
  const sql = connectTo(url);
  await sql`CREATE TABLE kept (n int8 PRIMARY KEY)`;
  return sql;
}

const kept = async (url: string): Promise<number[]> => {
  const sql = connectTo(url);
  const rows: { n: number }[] = await sql`SELECT n::int4 AS n FROM kept ORDER BY n`;
  return rows.map(({ n }) => n);
};

test("it syncs its files, and the order of text is not that of its bytes", async () => {
  const [settings] = await postgres.run(
    "SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS synced, 'a' < 'B' AS by_language",
  );
  expect(settings).toEqual({ fsync: "on", synced: "on", by_language: true });
});

test(
  "what was committed is there after SIGKILL of all its processes, and what was not is gone",
  async () => {
    const url = await postgres.createDatabase();
    const sql = await newTable(url);
    await sql`INSERT INTO kept VALUES (1)`;
    const reserved = await sql.reserve();
    await reserved`BEGIN`;
    await reserved`INSERT INTO kept VALUES (2)`;
    const before = postgres.pid;
    await postgres.kill();
    await expect(reserved`COMMIT`.execute()).rejects.toThrow();
    await postgres.start();
    expect(postgres.pid).not.toBe(before);
    expect(await kept(url)).toEqual([1]);
  },
  TEST_MS,
);

test("a client that verifies the server's certificate connects only with its authority", async () => {
  const url = postgres.url().replace("sslmode=disable", "sslmode=verify-full");
  const trusting = connectTo(url, { tls: { ca: LOCALHOST_CERTIFICATE } });
  const [row] = await trusting`SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`;
  expect(row).toEqual({ ssl: true });
  await expect(connectTo(url)`SELECT 1`.execute()).rejects.toThrow();
});

test("the proxy delays what goes through it", async () => {
  const proxy = await newProxy();
  const sql = connectTo(through(proxy, postgres.url()));
  await sql`SELECT 1`;
  proxy.delay(100);
  const began = performance.now();
  await sql`SELECT 1`;
  expect(performance.now() - began).toBeGreaterThanOrEqual(200);
});

test("the proxy counts round trips: statements that go together make one", async () => {
  const proxy = await newProxy();
  const sql = connectTo(through(proxy, postgres.url()));
  const asked = () => Promise.all([sql`SELECT 1`, sql`SELECT ${2}::int8`, sql`SELECT 3`]);
  // Each is prepared when it is first asked.
  await asked();
  const before = proxy.roundTrips;
  await asked();
  expect(proxy.roundTrips - before).toBe(1);
  for (let n = 0; n < 3; n++) await sql`SELECT 1`;
  expect(proxy.roundTrips - before).toBe(4);
  // What is sent without waiting for an answer is no round trip of its own, in however many pieces it comes.
  proxy.hold("to client");
  const first = sql`SELECT 1`.execute();
  await connectTo(postgres.url())`SELECT 1`;
  const second = sql`SELECT 3`.execute();
  await connectTo(postgres.url())`SELECT 1`;
  proxy.pass();
  await Promise.all([first, second]);
  expect(proxy.roundTrips - before).toBe(5);
});

test("the proxy drops connections and refuses new ones, until it passes them again", async () => {
  const proxy = await newProxy();
  const sql = connectTo(through(proxy, postgres.url()));
  await sql`SELECT 1`;
  expect(proxy.connections).toBe(1);
  proxy.drop();
  expect(proxy.connections).toBe(0);
  await expect(sql`SELECT 1`.execute()).rejects.toThrow();
  const other = connectTo(through(proxy, postgres.url()), { connectionTimeout: 1 });
  await expect(other`SELECT 1`.execute()).rejects.toThrow();
  proxy.pass();
  await until("connections pass", () => sql`SELECT 1`.then(() => true).catch(() => false));
});

test("an answer that the proxy halves is lost, and what it answered was done", async () => {
  const url = await postgres.createDatabase();
  await newTable(url);
  const proxy = await newProxy();
  const sql = connectTo(through(proxy, url));
  await sql`SELECT 1`;
  proxy.halve("to client");
  const inserted = sql.unsafe("INSERT INTO kept VALUES (1)").simple();
  await expect(inserted.execute()).rejects.toThrow();
  await until("the insert was committed", async () => (await kept(url)).length === 1);
});

test("a command that the proxy halves was never asked", async () => {
  const url = await postgres.createDatabase();
  await newTable(url);
  const proxy = await newProxy();
  const sql = connectTo(through(proxy, url));
  await sql`SELECT 1`;
  proxy.halve("to server");
  await expect(sql.unsafe("INSERT INTO kept VALUES (1)").simple().execute()).rejects.toThrow();
  expect(await kept(url)).toEqual([]);
});

test("what the proxy holds comes later, in its order", async () => {
  const proxy = await newProxy();
  const sql = connectTo(through(proxy, postgres.url()));
  await sql`SELECT 1`;
  proxy.hold("to server");
  const answers: string[] = [];
  const held = sql`SELECT 2`.then(() => answers.push("held"));
  await connectTo(postgres.url())`SELECT 3`.then(() => answers.push("direct"));
  proxy.pass();
  await held;
  expect(answers).toEqual(["direct", "held"]);
});

test(
  "a synchronous replica has all that was answered, and serves once the primary is gone for good",
  async () => {
    const primary = await startPostgres();
    closing.push(primary.close);
    const url = await primary.createDatabase();
    const sql = await newTable(url);
    const replica = await primary.addSynchronousReplica();
    closing.push(replica.close);
    const proxy = await startFaultyProxy(primary.port);
    closing.push(proxy.close);
    await sql`INSERT INTO kept VALUES (1)`;
    const onReplica = replica.url(new URL(url).pathname.slice(1));
    await expect(connectTo(onReplica)`INSERT INTO kept VALUES (2)`.execute()).rejects.toThrow(/read-only/);

    await primary.close();
    await replica.promote();
    proxy.moveTo(replica.port);
    const moved = connectTo(through(proxy, url));
    await moved`INSERT INTO kept VALUES (2)`;
    expect(await kept(onReplica)).toEqual([1, 2]);
  },
  TEST_MS,
);

test(
  "a primary without its synchronous replica answers no commit",
  async () => {
    const primary = await startPostgres();
    closing.push(primary.close);
    const sql = await newTable(await primary.createDatabase());
    const replica = await primary.addSynchronousReplica();
    await replica.close();
    const inserted = sql`INSERT INTO kept VALUES (1)`.execute();
    inserted.catch(() => {});
    await until("the commit waits for the replica", async () => {
      const [waiting] = await primary.run("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
      return waiting !== undefined;
    });
  },
  TEST_MS,
);
