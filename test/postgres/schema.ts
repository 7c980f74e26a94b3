/** The tables on PostgreSQL: how they are made and changed, and that they are SQLite's. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { askOn } from "../../src/store/postgres/ledger-rows.ts";
import { migratePostgres, postgresMigrations } from "../../src/store/postgres/migrate.ts";
import { readDefinitions, schemaDisagreements } from "../../src/store/postgres/schema.ts";
import { LOOKS_AT } from "../../src/store/postgres/write-order.ts";
import { NewerLedger, OLDEST_WRITER } from "../../src/store/sql/ledger-version.ts";
import type { MigrationStep } from "../../src/store/sql/migration-watch.ts";
import { newTables } from "../support/guard-cases.ts";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import { createConnections, through } from "./connections.ts";

const TEST_MS = 120_000;

let postgres: Postgres;
const { connectTo, newProxy, closeAll } = createConnections(() => postgres.port);

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
    "they are made as the list says that audits compare with: `bun run keep-definitions` writes it",
    async () => {
      const connection = await (await newLedger()).sql.reserve();
      expect(await schemaDisagreements(connection)).toEqual([]);
      const made = await readDefinitions(askOn(connection));
      const listed = readFileSync(join(import.meta.dir, "../../migrations/postgres/definitions.txt"), "utf8");
      expect(listed.trimEnd().split("\n").length).toBe(made.size);
      connection.release();
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
    "a database that stops answering is not waited for without end",
    async () => {
      const url = await postgres.createDatabase();
      const proxy = await newProxy();
      const sql = connectTo(through(proxy, url));
      await sql`SELECT 1`;
      proxy.hold("to client");
      await expect(migratePostgres(sql, { ...options(), waitMsMax: 50 })).rejects.toThrow(
        "the database has not answered within 5.05 seconds",
      );
      proxy.pass();
      await migratePostgres(connectTo(url), options());
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
    "a change waits for those who use its table, begins again where one of them waits for it, and is told once",
    async () => {
      const { url, sql } = await newLedger();
      const next = { name: "9999_next", sql: "ALTER TABLE warrants ADD COLUMN next int8", hash: "ff" };
      const known = [...postgresMigrations(), next];
      const other = await connectTo(url).reserve();
      await other`BEGIN`;
      await other`SELECT 1 FROM warrants`;
      await expect(migratePostgres(sql, { ...options(), waitMsMax: 50 }, known)).rejects.toThrow(
        "others have used the tables of this database for 0.05 seconds, so they could not be changed",
      );
      const pending: number[] = [];
      const watch = { onPending: (changes: number) => void pending.push(changes) };
      const changing = migratePostgres(sql, { ...options(), watch }, known);
      const isWaiting = async () => (await other`SELECT 1 FROM pg_locks WHERE NOT granted`).length > 0;
      while (!(await isWaiting())) await Bun.sleep(1);
      await other`SELECT 1 FROM scopes FOR UPDATE`;
      await other`COMMIT`;
      await changing;
      expect(pending).toEqual([1]);
      await sql`SELECT next FROM warrants`;
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

/** CHECKs of SQLite that only say that a column holds whole numbers. Here its type does. */
const OF_TYPES: readonly string[] = ["accounts_integers", "payees_integers"];
/** What SQLite's tables have not. */
const ONLY_HERE: readonly string[] = ["scopes.recorded_at", "scopes.revision"];
/** Triggers that SQLite needs not, since it cannot empty a table at once. */
const MORE_TRIGGERS: readonly string[] = ["purchases_are_not_truncated"];
/** The time of a scope's newest commit is a column only here, and is written again. */
const WATCHED_HERE: Readonly<Record<string, readonly string[]>> = {
  scopes_are_not_changed: ["mode", "organisation_id", "position"],
};
const HAS_CONDITION = / WHEN |RAISE/;
/** Words that only one engine needs: states that a row of a batch may be in already when it comes, types, and where numbers come from. */
const WORDS_OF_ONE: Readonly<Record<string, readonly string[]>> = {
  scopes_of_an_organisation: ["positions"],
  postings_hold_an_amount: ["settlement"],
  postings_of_a_known_payout: ["paid", "submitted"],
  warrants_grace_is_short: ["integer"],
};
/** The names that SQLite's numbers of rows have besides. */
const NUMBERS: readonly string[] = ["rowid", "oid", "_rowid_"];
const LEAST = "-9223372036854775808";
const LIST = "((?:'\\w+'|\\d+)(?:, (?:'\\w+'|\\d+))*)";

describe("the tables are SQLite's", () => {
  const lite = newTables();
  let sql: Client;
  beforeAll(async () => {
    ({ sql } = await newLedger());
  }, TEST_MS);

  const tables = lite
    .query<{ name: string; sql: string }, []>(
      "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '\\_\\_%' ESCAPE '\\' ORDER BY name",
    )
    .all();
  const namesOfTables = tables.map(({ name }) => name);
  type Column = { name: string; type: string; notnull: number; dflt_value: string | null; pk: number };
  const columnsOf = (table: string): readonly Column[] =>
    lite.query<Column, [string]>("SELECT * FROM pragma_table_info(?)").all(table);
  const keyOf = (table: string): readonly string[] =>
    columnsOf(table)
      .filter(({ pk }) => pk > 0)
      .sort((one, other) => one.pk - other.pk)
      .map(({ name }) => name);
  /** The column with the number of a row. */
  const numberOf = (table: string): string => (keyOf(table).join() === "position" ? "position" : "rowid");

  test("each column has its type, and may be empty where SQLite's may", async () => {
    const types: Record<string, string> = { INTEGER: "bigint", TEXT: "text", BLOB: "bytea" };
    const defaults: Record<string, string> = { false: "0", true: "1" };
    const expected = namesOfTables.flatMap((table) => [
      ...columnsOf(table).map(
        ({ name, type, notnull, dflt_value: given }) =>
          `${table}.${name} ${types[type.toUpperCase()]} ${notnull === 1} ${given && (defaults[given] ?? given)}`,
      ),
      ...(numberOf(table) === "rowid" ? [`${table}.rowid bigint true null`] : []),
    ]);
    const rows =
      await sql`SELECT table_name || '.' || column_name AS name, data_type AS type, is_nullable = 'NO' AS filled,
        regexp_replace(column_default, '::text$', '') AS given
      FROM information_schema.columns WHERE table_schema = 'public' AND table_name = ANY(${sql.array(namesOfTables, "TEXT")})`;
    const found = rows
      .filter(({ name }: { name: string }) => !ONLY_HERE.includes(name))
      .map((row: Record<string, unknown>) => `${row.name} ${row.type} ${row.filled} ${row.given}`);
    expect(found.sort()).toEqual(expected.sort());
  });

  test("every text is in the order of its bytes", async () => {
    const other = await sql`SELECT table_name, column_name FROM information_schema.columns
      WHERE table_schema = 'public' AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'`;
    expect([...other]).toEqual([]);
  });

  test("each row is found by the same key, and refers to the same rows", async () => {
    const expected = tables.flatMap(({ name }) => [
      `${name} PRIMARY KEY (${keyOf(name).join(", ")})`,
      ...lite
        .query<{ table: string; from: string; to: string }, [string]>(
          "SELECT * FROM pragma_foreign_key_list(?)",
        )
        .all(name)
        .map(({ table, from, to }) => `${name} FOREIGN KEY (${from}) REFERENCES ${table}(${to})`),
    ]);
    const found =
      await sql`SELECT conrelid::regclass || ' ' || replace(pg_get_constraintdef(oid), '"', '') AS text FROM pg_constraint
      WHERE contype IN ('p', 'f') AND conrelid::regclass::text = ANY(${sql.array(namesOfTables, "TEXT")})`;
    expect(found.map(({ text }: { text: string }) => text).sort()).toEqual(expected.sort());
  });

  /** An expression as both engines would write it, more or less: for a comparison, not for a database. */
  const plain = (text: string): string =>
    text
      .replaceAll(/[`"]\w+[`"]\.(?=[`"])/g, "")
      .replaceAll(/[`"()]/g, "")
      .replaceAll(/::(text|bigint|integer|json)\b(\[\])?/g, "")
      .replaceAll(/\s+/g, " ")
      .replaceAll(/IS NOT (?!NULL|DISTINCT)/g, "IS DISTINCT FROM ")
      .replaceAll(/(\w+) IS (?!NULL|NOT|DISTINCT)/g, "NOT $1 IS DISTINCT FROM ")
      .replaceAll(/(\w+) BETWEEN (\S+) AND /g, "$1 >= $2 AND $1 <= ")
      .replaceAll(new RegExp(`NOT IN ${LIST}`, "g"), "<> ALL ARRAY[$1]")
      .replaceAll(new RegExp(`IN ${LIST}`, "g"), "= ANY ARRAY[$1]")
      // What says that a column holds a whole number. The least one stays out where nothing else keeps it out.
      .replaceAll(/(\w+) \| 0 = \1 AND /g, "")
      .replaceAll(`'${LEAST}'`, LEAST)
      .replaceAll(new RegExp(` AND (\\w+) > ${LEAST}`, "g"), (all, column, _, whole) =>
        new RegExp(`\\b${column} >=? 0\\b`).test(whole) ? "" : all,
      )
      .trim();

  test("each index has its columns, and its row's number where two rows may be the same in them", async () => {
    type Index = { name: string; table: string; unique: number; sql: string };
    const expected = lite
      .query<Index, []>(
        `SELECT list.name, tbl_name AS "table", list."unique", sql FROM sqlite_schema, pragma_index_list(tbl_name) AS list
         WHERE type = 'index' AND sqlite_schema.name = list.name AND sql IS NOT NULL`,
      )
      .all()
      .map(({ name, table, unique, sql: text }) => {
        const [, columns = "", where = ""] = /^[^(]*\((.*?)\)(?: WHERE (.*))?$/s.exec(text) ?? [];
        const parts = columns.split(",").map(plain);
        const isOne =
          unique === 1 || parts.includes(numberOf(table)) || keyOf(table).every((key) => parts.includes(key));
        if (!isOne) parts.push(numberOf(table));
        return `${name} ${table} ${unique === 1} (${parts.join()}) ${plain(where)}`;
      });
    const rows =
      await sql`SELECT indexrelid::regclass::text AS name, indrelid::regclass::text AS "table", indisunique AS is_unique,
        ARRAY(SELECT pg_get_indexdef(indexrelid, at, true) FROM generate_series(1, indnkeyatts) AS at) AS columns,
        coalesce(pg_get_expr(indpred, indrelid), '') AS condition
      FROM pg_index WHERE NOT indisprimary AND indrelid::regclass::text = ANY(${sql.array(namesOfTables, "TEXT")})`;
    const found = rows.map(
      (row: { name: string; table: string; is_unique: boolean; columns: string[]; condition: string }) =>
        `${row.name} ${row.table} ${row.is_unique} (${row.columns.map(plain).join()}) ${plain(row.condition)}`,
    );
    const byRow = namesOfTables
      .filter((table) => numberOf(table) === "rowid")
      .map((table) => `${table}_by_row ${table} true (rowid) `);
    expect(found.sort()).toEqual([...expected, ...byRow].sort());
  });

  test("each CHECK says the same", async () => {
    const expected = tables.flatMap(({ name: table, sql: text }) =>
      [...text.matchAll(/CONSTRAINT "(\w+)" CHECK\((.*)\)(?:,|\n|$)/g)]
        .filter(([, name = ""]) => !OF_TYPES.includes(name))
        .map(([, name, condition = ""]) => `${table} ${name} ${plain(condition)}`),
    );
    const found =
      await sql`SELECT conrelid::regclass || ' ' || conname || ' ' AS name, pg_get_expr(conbin, conrelid) AS condition
      FROM pg_constraint WHERE contype = 'c' AND conrelid::regclass::text = ANY(${sql.array(namesOfTables, "TEXT")})`;
    expect(
      found.map(({ name, condition }: { name: string; condition: string }) => name + plain(condition)).sort(),
    ).toEqual(expected.sort());
  });

  type Trigger = { readonly table: string; readonly text: string };
  /** What a trigger says in quotes, and which columns it names as those that it watches. */
  const literalsIn = (text: string): string[] => {
    const quoted = [...text.matchAll(/'((?:[^']|'')*)'/g)].map(([, literal = ""]) => literal);
    // A pattern of SQLite's LIKE is a text without its signs, and PostgreSQL quotes a number below zero.
    const words = quoted.map((literal) => literal.replaceAll(/[\\%]/g, ""));
    return [...new Set(words)].filter((word) => !/^-?\d*$/.test(word)).sort();
  };
  const watchedBy = (text: string): string[] =>
    (/ UPDATE OF ([^()]*?) ON /s.exec(text.replaceAll(/[`"\s]+/g, " "))?.[1] ?? "")
      .split(",")
      .map((column) => column.trim())
      .filter((column) => column !== "" && !NUMBERS.includes(column))
      .sort();

  test("each trigger watches the same, compares with the same words and refuses with them", async () => {
    const expected = new Map(
      lite
        .query<Trigger & { name: string }, []>(
          `SELECT name, tbl_name AS "table", sql AS text FROM sqlite_schema WHERE type = 'trigger'`,
        )
        .all()
        .map(({ name, ...trigger }) => [name, trigger] as const),
    );
    const rows: (Trigger & { name: string })[] =
      await sql`SELECT tgname AS name, tgrelid::regclass::text AS "table",
        pg_get_triggerdef(pg_trigger.oid) || CASE proname WHEN 'refuse' THEN '' ELSE prosrc END AS text
      FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid
      WHERE NOT tgisinternal AND tgrelid::regclass::text = ANY(${sql.array(namesOfTables, "TEXT")})`;
    const found = new Map(rows.map(({ name, ...trigger }) => [name, trigger] as const));
    expect([...found.keys()].sort()).toEqual([...expected.keys(), ...MORE_TRIGGERS].sort());
    for (const [name, { table, text }] of expected) {
      const here = found.get(name) ?? { table: "", text: "" };
      const ofOne = WORDS_OF_ONE[name] ?? [];
      const wordsOf = (of: string) => literalsIn(of).filter((word) => !ofOne.includes(word));
      expect({ name, table: here.table, words: wordsOf(here.text) }).toEqual({
        name,
        table,
        words: wordsOf(text),
      });
      // One that does not name columns watches all, and has a condition.
      if (watchedBy(here.text).length > 0 || !HAS_CONDITION.test(here.text))
        expect<object>({ name, watched: watchedBy(here.text) }).toEqual({
          name,
          watched: WATCHED_HERE[name] ?? watchedBy(text),
        });
    }
  });

  test("what a guard or a reference looks at is written before", async () => {
    const references =
      await sql`SELECT conrelid::regclass::text AS "table", 'insert' AS event, ARRAY[confrelid::regclass::text] AS looked
      FROM pg_constraint WHERE contype = 'f' AND conrelid::regclass::text = ANY(${sql.array(namesOfTables, "TEXT")})
        -- An organisation makes its scopes.
        AND conrelid <> 'scopes'::regclass`;
    const guards: { table: string; event: string; body: string }[] =
      await sql`SELECT tgrelid::regclass::text AS "table", CASE WHEN tgtype & 4 = 4 THEN 'insert' ELSE 'update' END AS event, prosrc AS body
      FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid WHERE NOT tgisinternal`;
    const looks: { table: string; event: string; looked: string[] }[] = [
      ...references,
      ...guards.map(({ table, event, body }) => ({
        ...{ table, event },
        looked: [...body.matchAll(/\b(?:FROM|JOIN|,) (\w+)/g)].map(([, name = ""]) => name),
      })),
    ];
    const forgotten = looks.flatMap(({ table, event, looked }) =>
      looked
        .filter((name) => namesOfTables.includes(name) && name !== table)
        .filter((name) => !LOOKS_AT[table]?.[event as "insert" | "update"]?.includes(name))
        .map((name) => `${event} ${table} looks at ${name}`),
    );
    expect([...new Set(forgotten)]).toEqual([]);
    expect(looks.flatMap(({ looked }) => looked).length).toBeGreaterThan(100);
  });
});
