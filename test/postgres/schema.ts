/** The tables on PostgreSQL: how they are made and changed, and that they are SQLite's. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { migratePostgres, postgresMigrations } from "../../src/store/postgres/migrate.ts";
import { NewerLedger, OLDEST_WRITER } from "../../src/store/sql/ledger-version.ts";
import type { MigrationStep } from "../../src/store/sql/migration-watch.ts";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import { createConnections } from "./connections.ts";

const TEST_MS = 120_000;

let postgres: Postgres;
const { connectTo, closeAll } = createConnections(() => postgres.port);

beforeAll(async () => {
  postgres = await startPostgres();
}, TEST_MS);
afterAll(async () => {
  await closeAll();
  await postgres.close();
}, TEST_MS);

const options = (version = "0.1.0", id = "ins_1") => ({ version, newInstance: () => ({ id, createdAt: 7 }) });

/** A database with the tables, and a client of it. */
async function newLedger(version = "0.1.0") {
  const url = await postgres.createDatabase();
  const sql = connectTo(url);
  await migratePostgres(sql, options(version));
  return { url, sql };
}
type Client = Awaited<ReturnType<typeof newLedger>>["sql"];

const instancesOf = async (sql: Client) => [...(await sql`SELECT id, version, oldest_writer FROM instances`)];
const appliedIn = async (sql: Client) => [...(await sql`SELECT * FROM __holdfast_migrations ORDER BY name`)];

/** Everything in the schema that a change could change, as text. */
const schemaOf = async (sql: Client): Promise<readonly unknown[]> => [
  ...(await sql`SELECT table_name, column_name, data_type, collation_name, is_nullable, column_default
    FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2`),
  ...(await sql`SELECT conname, pg_get_constraintdef(oid) AS definition FROM pg_constraint ORDER BY 1, 2`),
  ...(await sql`SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1`),
  ...(await sql`SELECT tgname, pg_get_triggerdef(oid) AS definition FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1`),
  ...(await sql`SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY 1`),
];

describe("bringing the tables up to date", () => {
  test(
    "an empty database gets the tables, an instance and the list of changes, and nothing is reported",
    async () => {
      const url = await postgres.createDatabase();
      const sql = connectTo(url);
      const unexpected = () => {
        throw new Error("a new ledger is not brought up to date");
      };
      await migratePostgres(sql, {
        ...options("0.2.0"),
        watch: { onPending: unexpected, onProgress: unexpected },
      });
      expect(await instancesOf(sql)).toEqual([
        { id: "ins_1", version: "0.2.0", oldest_writer: OLDEST_WRITER },
      ]);
      expect((await appliedIn(sql)).map(({ name, hash }) => [name, hash])).toEqual(
        postgresMigrations().map(({ name, hash }) => [name, hash]),
      );
    },
    TEST_MS,
  );

  test(
    "once more changes nothing",
    async () => {
      const { sql } = await newLedger();
      const everything = async () => [
        await schemaOf(sql),
        await appliedIn(sql),
        await instancesOf(sql),
        [...(await sql`SELECT last_value FROM positions`)],
      ];
      const before = await everything();
      await migratePostgres(sql, options("0.1.0", "ins_other"));
      expect(await everything()).toEqual(before);
    },
    TEST_MS,
  );

  test(
    "two instances that begin at once make the tables once, and one instance",
    async () => {
      const url = await postgres.createDatabase();
      const ids = ["ins_1", "ins_2", "ins_3"];
      await Promise.all(ids.map((id) => migratePostgres(connectTo(url), options("0.1.0", id))));
      const sql = connectTo(url);
      expect((await appliedIn(sql)).length).toBe(postgresMigrations().length);
      const instances = await instancesOf(sql);
      expect(instances).toHaveLength(1);
      expect(ids).toContain(instances[0].id);
    },
    TEST_MS,
  );

  test(
    "one waits while another changes them, no longer than it may, and says what it waited for",
    async () => {
      const { url, sql } = await newLedger();
      const other = await connectTo(url).reserve();
      await other`BEGIN`;
      await other`SELECT 1 FROM __holdfast_migrations FOR UPDATE`;
      await expect(migratePostgres(sql, { ...options(), waitMsMax: 50 })).rejects.toThrow(
        "another instance is changing the tables of this database, and has not ended within 0.05 seconds",
      );
      // The connection is good for what comes next.
      const waiting = migratePostgres(sql, options());
      await other`COMMIT`;
      await waiting;
    },
    TEST_MS,
  );

  test(
    "a later change is made, with its steps, and only once",
    async () => {
      const { sql } = await newLedger();
      const next = {
        name: "9999_next",
        sql: "CREATE TABLE next (n int8); CREATE TABLE after (n int8)",
        hash: "ff",
      };
      const known = [...postgresMigrations(), next];
      const steps: (number | MigrationStep)[] = [];
      const report = (step: number | MigrationStep) => void steps.push(step);
      await migratePostgres(sql, { ...options(), watch: { onPending: report, onProgress: report } }, known);
      expect(steps).toEqual([1, { of: "changes", done: 1, total: 1 }]);
      await migratePostgres(sql, { ...options(), watch: { onPending: report, onProgress: report } }, known);
      expect(steps).toHaveLength(2);
      await sql`SELECT * FROM next, after`;
      // One of the version before goes on.
      await migratePostgres(sql, options());
    },
    TEST_MS,
  );

  test(
    "a change that fails changes nothing",
    async () => {
      const { sql } = await newLedger();
      const before = [await schemaOf(sql), await appliedIn(sql)];
      const failing = { name: "9999_next", sql: "CREATE TABLE next (n int8); SELECT 1 / 0", hash: "ff" };
      await expect(migratePostgres(sql, options(), [...postgresMigrations(), failing])).rejects.toThrow(
        "the change 9999_next of the tables failed: division by zero",
      );
      expect([await schemaOf(sql), await appliedIn(sql)]).toEqual(before);
    },
    TEST_MS,
  );

  test(
    "a change that was another one under the same name is refused",
    async () => {
      const { sql } = await newLedger();
      await sql`UPDATE __holdfast_migrations SET hash = 'ff' WHERE name = '0001_guards'`;
      await expect(migratePostgres(sql, options())).rejects.toThrow(
        "the change 0001_guards of the tables of this database was another than the one that is known",
      );
    },
    TEST_MS,
  );

  test(
    "a ledger keeps the newest version that opened it, and refuses one below the oldest that may",
    async () => {
      const { sql } = await newLedger("0.1.0");
      await migratePostgres(sql, options("0.10.0"));
      await migratePostgres(sql, options("0.9.0"));
      expect(await instancesOf(sql)).toEqual([
        { id: "ins_1", version: "0.10.0", oldest_writer: OLDEST_WRITER },
      ]);
      await sql`UPDATE instances SET version = '2.1.0', oldest_writer = '2.0.0'`;
      const before = await schemaOf(sql);
      const pending = [
        ...postgresMigrations(),
        { name: "9999_next", sql: "CREATE TABLE next (n int8)", hash: "ff" },
      ];
      for (const version of ["0.10.0", "2.0.0-rc.1"]) {
        const refused = migratePostgres(sql, options(version), pending);
        await expect(refused).rejects.toThrow(NewerLedger);
        await expect(refused).rejects.toThrow(
          `the ledger in it was written by Holdfast 2.1.0, and may be opened by 2.0.0 or newer; this is ${version}`,
        );
      }
      expect(await schemaOf(sql)).toEqual(before);
      await migratePostgres(sql, options("2.0.0"));
      expect(await instancesOf(sql)).toEqual([{ id: "ins_1", version: "2.1.0", oldest_writer: "2.0.0" }]);
    },
    TEST_MS,
  );
});
