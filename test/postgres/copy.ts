/** `holdfast copy` between a data folder and PostgreSQL, and the audit there. */
import { Database } from "bun:sqlite";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SQL } from "bun";
import { NO_PROGRESS } from "../../src/core/progress.ts";
import { auditPostgres } from "../../src/store/postgres/audit.ts";
import { type Copied, copyFromPostgres, copyToPostgres } from "../../src/store/postgres/copy.ts";
import { schemaDisagreements } from "../../src/store/postgres/schema.ts";
import { digestedColumns, digestOfStored } from "../../src/store/sql/row-digest.ts";
import { auditFolder } from "../../src/store/sqlite/audit.ts";
import { digestedTables } from "../../src/store/sqlite/fill-digests.ts";
import { hasLedger, ledgerFile } from "../../src/store/sqlite/ledger-file.ts";
import { lockForServer } from "../../src/store/sqlite/server-lock.ts";
import { type KeptLedger, replayAll, showAll } from "../store/ledgers/kept-ledger.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { PROGRAM } from "../support/executable.ts";
import { buildFullLedger } from "../support/full-ledger.ts";
import { must } from "../support/organisations.ts";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import { rowCounts } from "../support/rows.ts";
import { SCRIPTED } from "../support/stage.ts";
import { copiesIn } from "../support/temporary.ts";
import { until } from "../support/until.ts";
import { createConnections, through } from "./connections.ts";
import { openInstance } from "./store-context.ts";

const TEST_MS = 120_000;
/** How many warrants the large ledger has. A million were copied by hand: see docs/postgresql, "Move a ledger". */
const WARRANTS = Number(process.env.COPIED_WARRANTS ?? 5_000);
const LARGE_MS = 600_000;
/** More than it takes: the ledger of a million has 3 GB. */
const RSS_MAX = 600 * 1_024 * 1_024;

let postgres: Postgres;
let full: string;
const { connectTo, newProxy, closeAll } = createConnections(() => postgres.port);
const made: string[] = [];

beforeAll(async () => {
  [postgres, full] = await Promise.all([startPostgres(), buildFullLedger()]);
}, TEST_MS);
afterEach(closeAll);
afterAll(async () => {
  await postgres.close();
  for (const folder of [full, ...made]) rmSync(folder, { recursive: true, force: true });
}, TEST_MS);

const OPTIONS = { version: "0.1.0", startProgress: () => NO_PROGRESS };

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-copy-"));
  made.push(folder);
  return folder;
}

/** A copy of the full ledger, which a test may change. */
function fullLedger(): string {
  const folder = join(newFolder(), "data");
  cpSync(full, folder, { recursive: true });
  return folder;
}

const emptyDatabase = async (): Promise<SQL> => connectTo(await postgres.createDatabase());

async function there(folder: string): Promise<SQL> {
  const sql = await emptyDatabase();
  must(await copyToPostgres(folder, sql, OPTIONS));
  return sql;
}

async function andBack(sql: SQL): Promise<string> {
  const folder = join(newFolder(), "back");
  must(await copyFromPostgres(sql, folder, OPTIONS));
  return folder;
}

/** Writes by hand into a ledger, past its guards. */
function write(folder: string, ...statements: readonly string[]): void {
  const raw = new Database(ledgerFile(folder));
  const triggers = raw
    .query<{ name: string; sql: string }, []>("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
    .all();
  for (const { name } of triggers) raw.run(`DROP TRIGGER "${name}"`);
  for (const statement of statements) raw.run(statement);
  for (const { sql } of triggers) raw.run(sql);
  raw.close();
}

/** What a copy in a file says of itself: how far its tables came from PostgreSQL. */
const OF_THE_COPY = "imported_tables";

/** Every row of every table, with its number, but for what a copy says of itself. */
function rowsOf(folder: string): Readonly<Record<string, unknown>> {
  const raw = new Database(ledgerFile(folder), { readonly: true, safeIntegers: true });
  const tables = raw
    .query<{ name: string }, [string]>(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> ? ORDER BY name",
    )
    .all(OF_THE_COPY);
  const rows = tables.map(({ name }) => [
    name,
    raw.query(`SELECT rowid AS row_number, * FROM "${name}" ORDER BY rowid`).all(),
  ]);
  raw.close();
  return Object.fromEntries(rows);
}

/** How many rows of a ledger have a digest, and how many of these the digest of what they are. */
function digestsOf(folder: string): readonly [rows: number, right: number] {
  const raw = new Database(ledgerFile(folder), { readonly: true, safeIntegers: true });
  let [rows, right] = [0, 0];
  for (const table of digestedTables(raw)) {
    for (const row of raw.query<Record<string, unknown>, []>(`SELECT * FROM "${table}"`).all()) {
      rows += 1;
      if (row.digest === digestOfStored(table, digestedColumns(table, Object.keys(row)), row)) right += 1;
    }
  }
  raw.close();
  return [rows, right];
}

const tablesIn = async (sql: SQL): Promise<number> => {
  const [{ count }] = await sql`SELECT count(*)::int4 AS count FROM pg_class
    WHERE relnamespace = 'public'::regnamespace`;
  return count;
};

describe("there and back", () => {
  test(
    "a ledger with everything in it is equal row for row, and both audits agree",
    async () => {
      const sql = await emptyDatabase();
      const copied = must(await copyToPostgres(full, sql, OPTIONS)) as Copied;
      const before = rowsOf(full);
      const rows = Object.entries(before).filter(([name]) => name !== "__drizzle_migrations");
      expect(copied).toEqual({
        instanceId: (before.instances as [{ id: string }])[0].id,
        rows: rows.reduce((sum, [, each]) => sum + (each as unknown[]).length, 0),
        replaced: [],
      });
      expect(await auditPostgres(sql, copiesIn(newFolder()))).toEqual([]);
      const back = await andBack(sql);
      expect(rowsOf(back)).toEqual(before);
      expect(auditFolder(back)).toEqual([]);
      const [digested, right] = digestsOf(back);
      expect(right).toBe(digested);
      expect(digested).toBeGreaterThan(100);
      expect(readdirSync(back)).toEqual(["holdfast.db"]);
    },
    TEST_MS,
  );

  test(
    "both say how far they are",
    async () => {
      const steps = new Map<string, (readonly [done: number, total: number])[]>();
      const startProgress = (what: string) => {
        const of: (readonly [number, number])[] = [];
        steps.set(what, of);
        return {
          update: (done: number, total: number | null) => void of.push([done, total ?? -1]),
          stop: async () => {},
        };
      };
      const shown = () =>
        [...steps].map(([what, of]) => {
          expect(of.map(([done]) => done)).toEqual(of.map(([done]) => done).toSorted((a, b) => a - b));
          const [done, total] = of.at(-1) ?? [0, 0];
          // An audit of so few rows has ended before it says so.
          return [what, of.length > 2 && (what.startsWith("copying") ? done === total : done <= total)];
        });
      const sql = await emptyDatabase();
      must(await copyToPostgres(full, sql, { ...OPTIONS, startProgress }));
      expect(shown()).toEqual([
        ["checking the ledger", true],
        ["copying the ledger", true],
        ["checking the copy", true],
      ]);
      steps.clear();
      must(await copyFromPostgres(sql, join(newFolder(), "back"), { ...OPTIONS, startProgress }));
      expect(shown()).toEqual([
        ["copying the ledger", true],
        ["checking the copy", true],
      ]);
    },
    TEST_MS,
  );

  test(
    "the next number is above every row, and no scope records before its newest record",
    async () => {
      const sql = await there(full);
      const numbers = Object.values(rowsOf(full)).flatMap((rows) =>
        (rows as { row_number: bigint }[]).map((row) => row.row_number),
      );
      const [{ next }] = await sql`SELECT nextval('positions') AS next`;
      expect(numbers.filter((number) => number > next - 1_024n)).toEqual([]);
      const late: unknown[] = await sql`
      SELECT 1 FROM postings JOIN accounts ON accounts.position = account JOIN scopes ON scopes.position = scope
      WHERE postings.recorded_at > scopes.recorded_at UNION ALL
      SELECT 1 FROM trace JOIN warrants ON warrants.position = warrant JOIN scopes ON scopes.position = scope
      WHERE trace.recorded_at > scopes.recorded_at UNION ALL
      SELECT 1 FROM audit_entries JOIN scopes USING (organisation_id) WHERE audit_entries.recorded_at > scopes.recorded_at`;
      expect([...late]).toEqual([]);
      const [{ unused }] = await sql`SELECT count(*)::int4 AS unused FROM scopes WHERE recorded_at = 0`;
      expect(unused).toBeLessThan((rowsOf(full).scopes as unknown[]).length);
    },
    TEST_MS,
  );

  test(
    "what a first version wrote replays to the byte, and shows what it showed",
    async () => {
      const ledgers = join(import.meta.dir, "../store/ledgers");
      const folder = newFolder();
      writeFileSync(ledgerFile(folder), Bun.gunzipSync(readFileSync(join(ledgers, "0.1.0.db.gz"))));
      const kept = JSON.parse(readFileSync(join(ledgers, "0.1.0.json"), "utf8")) as KeptLedger;
      const ctx = createTestContext(SCRIPTED, await andBack(await there(folder)));
      ctx.clock.now += 60_000;
      expect(await replayAll(ctx, kept.requests)).toEqual(kept.answers);
      expect(await showAll(ctx, kept.requests)).toEqual([...kept.shown]);
      await ctx.close();
    },
    TEST_MS,
  );

  test(
    "in the database too, what a first version wrote replays to the byte, and shows what it showed",
    async () => {
      const ledgers = join(import.meta.dir, "../store/ledgers");
      const folder = newFolder();
      writeFileSync(ledgerFile(folder), Bun.gunzipSync(readFileSync(join(ledgers, "0.1.0.db.gz"))));
      const kept = JSON.parse(readFileSync(join(ledgers, "0.1.0.json"), "utf8")) as KeptLedger;
      const url = await postgres.createDatabase();
      must(await copyToPostgres(folder, connectTo(url), OPTIONS));
      const instance = await openInstance(url);
      instance.ctx.clock.now += 60_000;
      // Which warrants and balances there are is known from the folder.
      const { reader, close } = createTestContext(SCRIPTED, folder);
      const ctx = { ...instance.ctx, reader } as unknown as TestContext;
      expect(await replayAll(ctx, kept.requests)).toEqual(kept.answers);
      expect(await showAll(ctx, kept.requests)).toEqual([...kept.shown]);
      expect(instance.store.figures().commands).toBe(kept.requests.length);
      await instance.close();
      await close();
    },
    TEST_MS,
  );

  test(
    "by the command line, which says what it did and names no password",
    async () => {
      const url = await postgres.createDatabase();
      const folder = fullLedger();
      const run = (...args: readonly string[]) => {
        const env = { ...process.env, HOLDFAST_DATABASE: url };
        return Bun.spawnSync([...PROGRAM, "copy", ...args], { cwd: newFolder(), env });
      };
      const copied = run("--from", folder, "--json");
      expect(copied.stderr.toString()).toBe("");
      const database = `test_${url.match(/test_(\d+)/)?.[1]} at 127.0.0.1:${postgres.port}`;
      expect(JSON.parse(copied.stdout.toString())).toMatchObject({
        ...{ object: "copy", from: folder, to: database, replaced: [], audit: "ok" },
        instance_id: expect.stringMatching(/^ins_/),
      });
      const back = join(newFolder(), "back");
      const printed = run("--from", url, "--data", back);
      expect(printed.stdout.toString()).toContain(
        "The ledger is copied, and the audit of the copy found nothing wrong.",
      );
      expect(printed.stdout.toString()).not.toContain("only-for-tests");
      expect(rowsOf(back)).toEqual(rowsOf(folder));
      const again = run("--from", url, "--to", back);
      expect([again.exitCode, again.stderr.toString()]).toEqual([1, expect.stringContaining("is not empty")]);
      for (const [args, says] of [
        [[], "--from is missing"],
        [["--from", folder, "--to", back], "one side must be a data folder"],
        [["--from", "postgres://nobody"], "--from must name a user"],
      ] as const)
        expect(run(...args).stderr.toString()).toContain(says);
    },
    TEST_MS,
  );
});

describe("refused", () => {
  const refusal = (answer: unknown) => answer as { refused: string; message: string };

  test(
    "a database that has anything in it",
    async () => {
      const sql = await emptyDatabase();
      await sql`CREATE TABLE of_another (n int8)`;
      expect(refusal(await copyToPostgres(full, sql, OPTIONS)).message).toBe(
        "--to: the database is not empty (the table of_another is there), and nothing is overwritten; choose an empty one",
      );
      expect(await tablesIn(sql)).toBe(1);
      const ledger = await there(full);
      expect(refusal(await copyToPostgres(full, ledger, OPTIONS)).message).toContain(
        "(the table instances is there)",
      );
    },
    TEST_MS,
  );

  test(
    "a folder that has anything in it, and a side without a ledger",
    async () => {
      const sql = await emptyDatabase();
      const empty = newFolder();
      expect(refusal(await copyToPostgres(empty, sql, OPTIONS)).message).toBe(
        `--from: there is no ledger in ${empty}`,
      );
      expect(refusal(await copyFromPostgres(sql, empty, OPTIONS)).message).toBe(
        "--from: the database has no ledger",
      );
      expect(readdirSync(empty)).toEqual([]);
      writeFileSync(join(empty, "notes.txt"), "");
      expect(refusal(await copyFromPostgres(sql, empty, OPTIONS)).message).toContain(
        "is not empty (notes.txt is there)",
      );
    },
    TEST_MS,
  );

  test(
    "while a server runs on either",
    async () => {
      const folder = fullLedger();
      const sql = await emptyDatabase();
      const lock = must(lockForServer(folder));
      expect(refusal(await copyToPostgres(folder, sql, OPTIONS)).message).toContain("another server runs on");
      lock.release();
      must(await copyToPostgres(folder, sql, OPTIONS));
      await sql`INSERT INTO instances_running (id, started_at, seen_until, settings)
      VALUES ('inr_1', now(), now() + interval '20 seconds', '{}')`;
      const back = join(newFolder(), "back");
      expect(refusal(await copyFromPostgres(sql, back, OPTIONS)).message).toBe(
        "--from: a server runs on the database (inr_1); stop it first",
      );
      await sql`UPDATE instances_running SET seen_until = now()`;
      must(await copyFromPostgres(sql, back, OPTIONS));
    },
    TEST_MS,
  );

  test(
    "while somebody writes to the database; and nobody can while it is copied",
    async () => {
      const url = await postgres.createDatabase();
      const sql = connectTo(url);
      must(await copyToPostgres(full, sql, OPTIONS));
      const writer = await connectTo(url).reserve();
      await writer`BEGIN`;
      await writer`UPDATE scopes SET recorded_at = recorded_at`;
      const back = join(newFolder(), "back");
      expect(refusal(await copyFromPostgres(sql, back, OPTIONS)).message).toContain(
        "somebody writes to the database",
      );
      await writer`ROLLBACK`;
      await writer`BEGIN`;
      // While it is copied: the progress of the copy is the moment to try.
      const tries: Promise<string>[] = [];
      const startProgress = () => ({
        update: () => {
          if (tries.length > 0) return;
          // What a DELETE would wait for.
          const tried = writer`LOCK TABLE webhooks IN ROW EXCLUSIVE MODE NOWAIT`;
          tries.push(
            tried.then(
              () => "written",
              ({ errno }: { errno: string }) => errno,
            ),
          );
        },
        stop: async () => {},
      });
      must(await copyFromPostgres(sql, back, { ...OPTIONS, startProgress }));
      expect(await Promise.all(tries)).toEqual(["55P03"]);
      writer.release();
    },
    TEST_MS,
  );

  test(
    "a ledger whose audit disagrees, on either side",
    async () => {
      const folder = fullLedger();
      write(
        folder,
        "UPDATE warrants SET payee = 'mallory' WHERE position = (SELECT min(position) FROM warrants)",
      );
      const sql = await emptyDatabase();
      expect(refusal(await copyToPostgres(folder, sql, OPTIONS))).toMatchObject({
        refused: "audit_disagrees",
        message: expect.stringContaining("Nothing was copied"),
      });
      expect(await tablesIn(sql)).toBe(0);

      must(await copyToPostgres(full, sql, OPTIONS));
      await sql`ALTER TABLE deposits DISABLE TRIGGER deposits_are_not_changed`;
      await sql`UPDATE deposits SET reference = 'changed' WHERE position = (SELECT min(position) FROM deposits)`;
      await sql`ALTER TABLE deposits ENABLE TRIGGER deposits_are_not_changed`;
      const back = join(newFolder(), "back");
      expect(refusal(await copyFromPostgres(sql, back, OPTIONS)).message).toMatch(
        /^The audit of the copy disagrees: deposit /,
      );
      expect(hasLedger(back)).toBe(false);
      expect(await auditPostgres(sql, copiesIn(newFolder()))).toContainEqual(
        expect.stringMatching(/^deposit .*digest/),
      );
    },
    TEST_MS,
  );
});

describe("texts that PostgreSQL cannot keep", () => {
  const NUL = "char(97, 0, 98)";

  test(
    "have U+FFFD in place of U+0000 where they are only shown, with the digest of that",
    async () => {
      const folder = fullLedger();
      const ids = rowsOf(folder) as Record<string, Record<string, string>[]>;
      const [organisation, user] = [ids.organisations?.[0]?.id, ids.users?.[0]?.id];
      write(
        folder,
        `INSERT INTO notices (id, organisation_id, mode, user_id, channel, subject, about, status, attempts, answer, created_at)
       VALUES ('ntc_1', '${organisation}', 'live', '${user}', 'email', 's', '{}', 'delivered', 1, ${NUL}, 1)`,
        `UPDATE payout_waits SET detail = ${NUL}`,
      );
      const raw = new Database(ledgerFile(folder), { safeIntegers: true });
      const columns = digestedColumns(
        "payout_waits",
        raw
          .query<{ name: string }, []>("SELECT name FROM pragma_table_info('payout_waits')")
          .all()
          .map(({ name }) => name),
      );
      const waits = raw.query<Record<string, bigint>, []>("SELECT * FROM payout_waits").all();
      for (const wait of waits)
        raw
          .query("UPDATE payout_waits SET digest = ? WHERE payee = ?")
          .run(digestOfStored("payout_waits", columns, wait), wait.payee as bigint);
      raw.close();
      expect(waits.length).toBeGreaterThan(0);
      const sql = await emptyDatabase();
      const { replaced } = must(await copyToPostgres(folder, sql, OPTIONS)) as Copied;
      expect(replaced).toEqual([
        { table: "notices", column: "answer", texts: 1 },
        { table: "payout_waits", column: "detail", texts: waits.length },
      ]);
      const [notice] = await sql`SELECT answer FROM notices WHERE id = 'ntc_1'`;
      expect(notice.answer).toBe("a\ufffdb");
      expect(await auditPostgres(sql, copiesIn(newFolder()))).toEqual([]);
    },
    TEST_MS,
  );

  test(
    "are refused where anything is decided or signed by them, with table, row and column",
    async () => {
      const folder = fullLedger();
      write(folder, `UPDATE users SET name = ${NUL}`);
      const sql = await emptyDatabase();
      expect(await copyToPostgres(folder, sql, OPTIONS)).toMatchObject({
        refused: "validation_failed",
        message: expect.stringMatching(
          /^--from: users\.name of the row \d+ has a U\+0000, which PostgreSQL cannot keep/,
        ),
      });
      expect(await tablesIn(sql)).toBe(0);
    },
    TEST_MS,
  );

  test("half of a character is U+FFFD in both engines, and a digest is that of what is kept", async () => {
    const text = "a\ud800b";
    const sql = await emptyDatabase();
    const [there] = await sql`SELECT ${text}::text AS text`;
    const raw = new Database(":memory:");
    const here = raw.query<{ text: string }, [string]>("SELECT ? AS text").get(text);
    raw.close();
    expect([there.text, here?.text]).toEqual(["a\ufffdb", "a\ufffdb"]);
    const digest = (value: string) => digestOfStored("users", ["name"], { name: value });
    expect(digest(text)).toBe(digest("a\ufffdb"));
  });
});

describe("the audit compares the guards with those that Holdfast makes", () => {
  let url: string;
  beforeAll(async () => {
    url = await postgres.createDatabase();
    must(await copyToPostgres(full, connectTo(url), OPTIONS));
    await closeAll();
  }, TEST_MS);

  const CHANGES = [
    [
      "trigger warrants_keep_their_terms of warrants",
      "ALTER TABLE warrants DISABLE TRIGGER warrants_keep_their_terms",
    ],
    ["trigger trace_is_not_deleted of trace", "DROP TRIGGER trace_is_not_deleted ON trace"],
    [
      "trigger planted of postings",
      "CREATE TRIGGER planted BEFORE DELETE ON postings EXECUTE FUNCTION refuse('nothing')",
    ],
    [
      "function refuse",
      "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
    ],
    [
      "constraint accounts_sum_to_zero of accounts",
      "ALTER TABLE accounts DROP CONSTRAINT accounts_sum_to_zero",
    ],
    ["index idempotency_keys_by_key of idempotency_keys", "DROP INDEX idempotency_keys_by_key"],
    [
      "column note of deposit_senders",
      'ALTER TABLE deposit_senders ALTER note TYPE text COLLATE "und-x-icu"',
    ],
    ["column more of scopes", "ALTER TABLE scopes ADD more int8"],
    ["rule planted of deposits", "CREATE RULE planted AS ON INSERT TO deposits DO INSTEAD NOTHING"],
    ["sequence positions", "ALTER SEQUENCE positions INCREMENT BY 1"],
    ["foreign keys of table agents", "ALTER TABLE agents DISABLE TRIGGER ALL"],
    [
      "constraint warrants_share of warrants",
      "ALTER TABLE warrants DROP CONSTRAINT warrants_share, ADD CONSTRAINT warrants_share CHECK (true)",
    ],
  ] as const;
  test.each(CHANGES)(
    "%s",
    async (what, statement) => {
      const connection = await connectTo(url).reserve();
      await connection`BEGIN`;
      expect(await schemaDisagreements(connection)).toEqual([]);
      await connection.unsafe(statement);
      expect(await schemaDisagreements(connection)).toContain(`${what} is not as Holdfast makes it`);
      await connection`ROLLBACK`;
      connection.release();
    },
    TEST_MS,
  );

  test(
    "a role that only reads sees the same, and other tables beside them do not matter",
    async () => {
      const sql = connectTo(url);
      await sql`CREATE TABLE of_another (n int8 PRIMARY KEY)`;
      await sql`CREATE ROLE serving LOGIN PASSWORD 'only-for-tests'`;
      await sql`GRANT SELECT ON ALL TABLES IN SCHEMA public TO serving`;
      const serving = connectTo(url.replace("//holdfast:", "//serving:"));
      const audited = () => auditPostgres(serving, copiesIn(newFolder()));
      expect(await audited()).toEqual([]);
      await sql`ALTER TABLE warrants DISABLE TRIGGER warrants_keep_their_terms`;
      expect(await audited()).toEqual([
        "trigger warrants_keep_their_terms of warrants is not as Holdfast makes it",
      ]);
      await sql`ALTER TABLE warrants ENABLE TRIGGER warrants_keep_their_terms`;
      await sql`ALTER ROLE serving SET session_replication_role = replica`;
      const next = connectTo(url.replace("//holdfast:", "//serving:"));
      expect(await auditPostgres(next, copiesIn(newFolder()))).toEqual([
        "setting session_replication_role is not as Holdfast makes it",
      ]);
    },
    TEST_MS,
  );

  test(
    "where a newer version has changed the tables, the guards that are switched off are named",
    async () => {
      const connection = await connectTo(url).reserve();
      await connection`BEGIN`;
      await connection`INSERT INTO __holdfast_migrations VALUES ('9999_newer', 'a hash', 1)`;
      await connection`ALTER TABLE scopes ADD more int8`;
      expect(await schemaDisagreements(connection)).toEqual([]);
      await connection`ALTER TABLE checks DISABLE TRIGGER checks_are_not_changed`;
      await connection`ALTER TABLE agents DISABLE TRIGGER ALL`;
      const named = await schemaDisagreements(connection);
      expect(named).toContain("trigger checks_are_not_changed of checks is not as Holdfast makes it");
      expect(named).toContain("foreign keys of table agents is not as Holdfast makes it");
      await connection`ROLLBACK`;
      connection.release();
    },
    TEST_MS,
  );
});

describe("SIGKILL in the middle", () => {
  /** Kills a copy when it has gone so many times to the database and back. */
  async function killed(url: string, roundTrips: number, ...args: readonly string[]): Promise<void> {
    const proxy = await newProxy();
    const env = { ...process.env, HOLDFAST_DATABASE: through(proxy, url) };
    const child = Bun.spawn([...PROGRAM, "copy", ...args], {
      cwd: newFolder(),
      env,
      stdout: "ignore",
      stderr: "ignore",
    });
    proxy.delay(2);
    await until(
      "it is in the middle",
      () => proxy.roundTrips >= roundTrips || child.exitCode !== null,
      TEST_MS,
    );
    child.kill("SIGKILL");
    await child.exited;
    expect(child.signalCode).toBe("SIGKILL");
    proxy.drop();
  }

  test.each([20, 150, 250, 350])(
    "into a database: it is empty after %d round trips, and can be copied into",
    async (roundTrips) => {
      const url = await postgres.createDatabase();
      const folder = fullLedger();
      await killed(url, roundTrips, "--from", folder);
      const sql = connectTo(url);
      await until("the server has noticed", async () => {
        const [{ count }] = await sql`SELECT count(*)::int4 AS count FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`;
        return count === 0;
      });
      expect(await tablesIn(sql)).toBe(0);
      must(await copyToPostgres(folder, sql, OPTIONS));
      expect(readdirSync(folder).filter((name) => name.startsWith("holdfast-audit."))).toEqual([]);
    },
    TEST_MS,
  );

  test(
    "into a folder: no server starts on it",
    async () => {
      const url = await postgres.createDatabase();
      must(await copyToPostgres(full, connectTo(url), OPTIONS));
      const back = join(newFolder(), "back");
      await killed(url, 100, "--to", back);
      expect(hasLedger(back)).toBe(false);
      const served = Bun.spawnSync([...PROGRAM, "serve", "--data", back, "--port", "0"], {
        timeout: TEST_MS,
      });
      expect([served.exitCode, served.stderr.toString()]).toEqual([
        1,
        expect.stringContaining("or was cut off"),
      ]);
    },
    TEST_MS,
  );
});

test(
  "many warrants go there and back, in little memory",
  async () => {
    const folder = join(newFolder(), "data");
    const facts = newFolder();
    const fill = [
      join(import.meta.dir, "../bench/fill.ts"),
      folder,
      `${WARRANTS}`,
      join(facts, "facts"),
      join(facts, "ids"),
    ];
    const filled = Bun.spawnSync([process.execPath, ...fill], { stderr: "inherit" });
    expect(filled.exitCode).toBe(0);
    const url = await postgres.createDatabase();
    const back = join(newFolder(), "back");
    for (const args of [
      ["--from", folder],
      ["--to", back],
    ]) {
      const copy = Bun.spawnSync([...PROGRAM, "copy", ...args, "--json"], {
        env: { ...process.env, HOLDFAST_DATABASE: url },
      });
      expect(copy.stderr.toString()).toBe("");
      expect(Number(copy.resourceUsage.maxRSS)).toBeLessThan(RSS_MAX);
    }
    expect({ ...rowCounts(back), [OF_THE_COPY]: 0n }).toEqual({ ...rowCounts(folder), [OF_THE_COPY]: 0n });
    expect(Number(rowCounts(back).warrants)).toBe(WARRANTS);
  },
  LARGE_MS,
);
