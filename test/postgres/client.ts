/**
 * What an engine on PostgreSQL may rely on in Bun's own client, and what it may not. Earlier versions gave one query's rows to
 * another, or never settled a promise: these tests come before those of anything that is built on it.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import { LOCALHOST_CERTIFICATE } from "../support/tls.ts";
import { until } from "../support/until.ts";
import { createConnections, through } from "./connections.ts";

const TEST_MS = 120_000;
const GREATEST = 9_223_372_036_854_775_807n;

let postgres: Postgres;
const { connectTo, newProxy, closeAll } = createConnections(() => postgres.port);

beforeAll(async () => {
  postgres = await startPostgres();
  await postgres.run("CREATE TABLE kept (n int8 PRIMARY KEY); CREATE TABLE locked (n int8 PRIMARY KEY)");
  await postgres.run("INSERT INTO locked VALUES (1), (2)");
}, TEST_MS);
afterAll(async () => {
  await closeAll();
  await postgres.close();
}, TEST_MS);

const direct = () => connectTo(postgres.url());

/** Which of these numbers are kept. */
const kept = async (...numbers: readonly number[]): Promise<number[]> => {
  const sql = direct();
  const rows: { n: number }[] =
    await sql`SELECT n::int4 AS n FROM kept WHERE n = ANY(${sql.array([...numbers], "BIGINT")}::int8[]) ORDER BY n`;
  return rows.map(({ n }) => n);
};

/** The SQLSTATE of a failure, or the client's own code where the server said nothing; null where there was none. */
const failureOf = (work: PromiseLike<unknown>): Promise<string | null> =>
  Promise.resolve(work).then(
    () => null,
    ({ errno, code }: { readonly errno?: unknown; readonly code: string }) =>
      typeof errno === "string" ? errno : code,
  );
const CLOSED = "ERR_POSTGRES_CONNECTION_CLOSED";

test("int8, bytes and text come back as they were sent, alone and in arrays", async () => {
  const sql = direct();
  const values = [GREATEST, -GREATEST - 1n, 2n ** 53n + 1n];
  const texts = ['a"b\\,{}', "NULL", "\u{1f600}"];
  const bytes = [Buffer.from([0, 255]), Buffer.alloc(0), Buffer.alloc(32, 7)];
  const rows = await sql.unsafe(
    "SELECT n, t, b FROM unnest($1::int8[], $2::text[], $3::bytea[]) WITH ORDINALITY AS u(n, t, b, at) ORDER BY at",
    [sql.array(values, "BIGINT"), sql.array(texts, "TEXT"), sql.array(bytes, "BYTEA")],
  );
  expect([...rows]).toEqual(values.map((n, at) => ({ n, t: texts[at], b: bytes[at] })));
  const [row] = await sql`SELECT ${GREATEST}::int8 AS n, ${bytes[0]}::bytea AS b, ${texts[0]}::text AS t`;
  expect(row).toEqual({ n: GREATEST, b: bytes[0], t: texts[0] });
});

test("a null byte in a text is refused, and the connection goes on", async () => {
  const sql = direct();
  expect(await failureOf(sql`SELECT ${"a\0b"}::text`)).toBe("22021");
  expect([...(await sql`SELECT ${"fine"}::text AS t`)]).toEqual([{ t: "fine" }]);
});

test("each failure has its SQLSTATE", async () => {
  const [one, other] = [await direct().reserve(), await direct().reserve()];
  await one`INSERT INTO kept VALUES (10)`;
  expect(await failureOf(one`INSERT INTO kept VALUES (10)`)).toBe("23505");
  await one`SET statement_timeout = 50`;
  expect(await failureOf(one`SELECT pg_sleep(10)`)).toBe("57014");
  await one`SET statement_timeout = 0`;

  await Promise.all([one`BEGIN`, other`BEGIN`]);
  await Promise.all([
    one`UPDATE locked SET n = n WHERE n = 1`.execute(),
    other`UPDATE locked SET n = n WHERE n = 2`.execute(),
  ]);
  const both = await Promise.all([
    failureOf(one`UPDATE locked SET n = n WHERE n = 2`),
    failureOf(other`UPDATE locked SET n = n WHERE n = 1`),
  ]);
  expect(both.filter((failure) => failure !== null)).toEqual(["40P01"]);
  await Promise.all([one`ROLLBACK`, other`ROLLBACK`]);

  await Promise.all([one`BEGIN ISOLATION LEVEL SERIALIZABLE`, other`BEGIN ISOLATION LEVEL SERIALIZABLE`]);
  for (const each of [one, other]) await each`SELECT count(*) FROM kept`;
  await one`INSERT INTO kept VALUES (11)`;
  await other`INSERT INTO kept VALUES (12)`;
  const committed = [await failureOf(one`COMMIT`), await failureOf(other`COMMIT`)];
  expect(committed).toEqual([null, "40001"]);
});

test("COMMIT of a failed transaction does not fail: its command says that it was undone", async () => {
  const sql = await direct().reserve();
  await sql`BEGIN`;
  expect(await failureOf(sql`SELECT 1 / ${0n}::int8`)).toBe("22012");
  expect((await sql`COMMIT`).command).toBe("ROLLBACK");
  await sql`BEGIN`;
  const updated = await sql`UPDATE locked SET n = n`;
  expect([updated.count, (await sql`COMMIT`).command]).toEqual([2, "COMMIT"]);
});

test("statements that go together get each their own rows, whether they were prepared before or not", async () => {
  const sql = direct();
  for (let round = 0; round < 100; round++) {
    const rows = await Promise.all([
      sql.unsafe("SELECT $1::text AS v", [`a${round}`]),
      sql.unsafe(`SELECT $1::text AS v, ${round} AS w`, [`b${round}`]),
      sql.unsafe("SELECT $1::text AS v", [`c${round}`]),
      sql.unsafe("SELECT 'd' AS v"),
      sql.unsafe(`SELECT $1::text AS v, ${round} AS x`, [`e${round}`]),
    ]);
    expect(rows.map(([row]) => row.v)).toEqual([`a${round}`, `b${round}`, `c${round}`, "d", `e${round}`]);
  }
});

test("a whole transaction is one round trip where its statements are templates, and not where one is unsafe without parameters", async () => {
  const proxy = await newProxy();
  const sql = await connectTo(through(proxy, postgres.url())).reserve();
  const roundTripsOf = async (work: () => Promise<unknown>): Promise<number> => {
    // Each statement is prepared when it is first asked.
    await work();
    const before = proxy.roundTrips;
    await work();
    return proxy.roundTrips - before;
  };
  const select = () => sql.unsafe("SELECT n FROM locked WHERE n = $1 FOR UPDATE", [1n]).execute();
  const templates = () => Promise.all([sql`BEGIN`.execute(), select(), sql`COMMIT`.execute()]);
  const unsafe = () => Promise.all([sql.unsafe("BEGIN").execute(), select(), sql.unsafe("COMMIT").execute()]);
  expect(await roundTripsOf(templates)).toBe(1);
  expect(await roundTripsOf(unsafe)).toBeGreaterThan(1);
});

test("all that is under way fails with a lost connection, and nothing of it runs on the next one", async () => {
  const proxy = await newProxy();
  const pool = connectTo(through(proxy, postgres.url()));
  const sql = await pool.reserve();
  await sql`BEGIN`;
  const underWay = [
    failureOf(sql`SELECT pg_sleep(60)`),
    failureOf(sql`INSERT INTO kept VALUES (20)`),
    failureOf(sql.unsafe("INSERT INTO kept VALUES ($1)", [21n])),
  ];
  await until("the first statement runs", async () => {
    const [running] = await postgres.run(
      "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep(60)%'",
    );
    return running !== undefined;
  });
  proxy.moveTo(postgres.port);
  expect(await Promise.all(underWay)).toEqual([CLOSED, CLOSED, CLOSED]);
  // The abandoned transaction goes on, while others use the pool's next connection.
  const others = pool`INSERT INTO kept VALUES (22)`.execute();
  expect(await failureOf(sql`INSERT INTO kept VALUES (23)`)).toBe(CLOSED);
  expect(await failureOf(sql`COMMIT`)).toBe(CLOSED);
  sql.release();
  await others;
  expect(await kept(20, 21, 22, 23)).toEqual([22]);
});

test("whether a COMMIT without an answer was done is found out by locking a row that it had locked", async () => {
  const foundOut = async (n: number): Promise<boolean> => {
    const sql = await direct().reserve();
    await sql`BEGIN`;
    // The other transaction holds this row for as long as it lives.
    await sql`SELECT n FROM locked WHERE n = 1 FOR UPDATE`;
    const [row] = await sql.unsafe("SELECT n FROM kept WHERE n = $1", [n]);
    await sql`ROLLBACK`;
    return row !== undefined;
  };
  for (const [n, lost, isCommitted] of [
    [30, "to client", true],
    [31, "to server", false],
  ] as const) {
    const proxy = await newProxy();
    const sql = await connectTo(through(proxy, postgres.url())).reserve();
    // Prepared first, so that it goes in one piece.
    await sql`BEGIN`;
    await sql`COMMIT`;
    await sql`BEGIN`;
    await sql`SELECT n FROM locked WHERE n = 1 FOR UPDATE`;
    await sql.unsafe("INSERT INTO kept VALUES ($1)", [n]);
    proxy.halve(lost);
    expect(await failureOf(sql`COMMIT`)).toBe(CLOSED);
    expect(await foundOut(n)).toBe(isCommitted);
  }
});

test("a statement whose packets are lost waits until its client is closed", async () => {
  const proxy = await newProxy();
  const pool = connectTo(through(proxy, postgres.url()));
  const sql = await pool.reserve();
  await sql`SELECT 1`;
  proxy.hold("to server");
  const failed = failureOf(sql`SELECT 2`);
  await sql.close({ timeout: 0 });
  expect(await failed).toBe(CLOSED);
  proxy.pass();
  expect([...(await pool`SELECT 3 AS n`)]).toEqual([{ n: 3 }]);
});

test("a certificate is verified by sslmode=verify-full alone: `tls` by itself takes any", async () => {
  const url = postgres.url().replace("?sslmode=disable", "");
  const isEncrypted = async (address: string, options = {}): Promise<boolean> => {
    const [row] = await connectTo(address, options)`SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`;
    return row.ssl;
  };
  const authority = { tls: { ca: LOCALHOST_CERTIFICATE } };
  expect(await isEncrypted(url)).toBe(false);
  expect(await isEncrypted(url, { tls: true })).toBe(true);
  expect(await failureOf(isEncrypted(`${url}?sslmode=verify-full`))).toBe("DEPTH_ZERO_SELF_SIGNED_CERT");
  expect(await isEncrypted(`${url}?sslmode=verify-full`, authority)).toBe(true);
  const named = { tls: { ...authority.tls, serverName: "other.test" } };
  expect(await failureOf(isEncrypted(`${url}?sslmode=verify-full`, named))).toBe(
    "ERR_TLS_CERT_ALTNAME_INVALID",
  );
});
