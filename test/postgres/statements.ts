/** Every statement of the readers, look-ups and indexes gives the same rows on PostgreSQL as on SQLite. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import type { SQL } from "bun";
import { type Translated, toPostgres } from "../../src/store/postgres/dialect.ts";
import { postgresMigrations } from "../../src/store/postgres/migrate.ts";
import { arrayOf } from "../../src/store/postgres/values.ts";
import type { SqlValue } from "../../src/store/sql/database.ts";
import { createLogWriter } from "../../src/store/sql/log.ts";
import { createSqlReader } from "../../src/store/sql/readers/reader.ts";
import { ledgerFile } from "../../src/store/sqlite/ledger-file.ts";
import { connect } from "../../src/store/sqlite/open.ts";
import { buildFullLedger } from "../support/full-ledger.ts";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import { type Ran, watchStatements } from "../support/watched-statements.ts";
import { createConnections } from "./connections.ts";
import { askEveryLookUp } from "./every-look-up.ts";
import { askEveryRead } from "./every-read.ts";

const TEST_MS = 300_000;

let folder: string;
let postgres: Postgres;
let sqlite: Database;
let sql: SQL;
/** What was asked, each once, by text. */
const asked = new Map<string, Map<string, Ran>>();
const { connectTo, closeAll } = createConnections(() => postgres.port);

beforeAll(async () => {
  postgres = await startPostgres();
  sql = connectTo(postgres.url());
  folder = await buildFullLedger();
  sqlite = new Database(ledgerFile(folder), { safeIntegers: true });
  makeUp();
  for (const { sql: text } of postgresMigrations()) await sql.unsafe(text).simple();
  await copyRows();
  askEverything();
}, TEST_MS);
afterAll(async () => {
  await closeAll();
  await postgres.close();
  sqlite.close();
  rmSync(folder, { recursive: true });
}, TEST_MS);

/** What a full ledger does not have. Some rows have the same time, so that only the order of commits is between them. */
const MADE_UP = [
  `INSERT INTO webhooks SELECT 'whk_' || position || '_' || column1, organisation_id, mode, 'https://hooks.example', '[]', 'secret', column1, 5
   FROM scopes, (VALUES (0), (1))`,
  `INSERT INTO webhook_deliveries (id, webhook_id, organisation_id, mode, event, event_id, warrant_id, sequence, status, attempts, response_code,
     claimed_until, next_attempt_at, created_at)
   SELECT 'dlv_' || trace.position, webhooks.id, webhooks.organisation_id, webhooks.mode, 'warrant.held', 'evt_' || (trace.position % 20), warrants.id, sequence,
     CASE trace.position % 5 WHEN 0 THEN 'pending' WHEN 1 THEN 'failed' WHEN 2 THEN 'delivered' ELSE 'exhausted' END, trace.position % 3, 200,
     CASE trace.position % 5 WHEN 1 THEN recorded_at / 7 END, CASE trace.position % 5 WHEN 0 THEN recorded_at / 7 END, recorded_at
   FROM trace JOIN warrants ON warrants.position = warrant JOIN scopes ON scopes.position = scope
     JOIN webhooks USING (organisation_id, mode) WHERE disabled = 0`,
  `INSERT INTO notices SELECT 'ntc_' || users.rowid || channel.column1, organisation_id, 'live', users.id, channel.column1, 'trouble ' || (users.rowid % 3), '{}',
     NULL, CASE users.rowid % 3 WHEN 0 THEN 'pending' WHEN 1 THEN 'failed' ELSE 'delivered' END, 1, NULL, NULL,
     CASE users.rowid % 3 WHEN 1 THEN 7 END, CASE users.rowid % 3 WHEN 0 THEN 7 END, 9
   FROM users, (VALUES ('email'), ('push')) AS channel`,
  `INSERT INTO notice_settings (user_id, organisation_id, email, sandbox, from_minute, time_zone)
   SELECT id, organisation_id, 1, 0, 60, 'UTC' FROM users WHERE rowid % 2`,
  "INSERT INTO messaging_accounts SELECT id, organisation_id, 'chat ' || id, NULL, 5 FROM users WHERE rowid % 2",
  "INSERT INTO messaging_codes SELECT id, organisation_id, 'code ' || id, 5 FROM users WHERE rowid % 2",
  `INSERT INTO push_subscriptions
   SELECT 'psh_' || id, organisation_id, id, 'https://push.example/' || id, 'key', 'secret', 'Ünicode \u{1f600}', 5, NULL FROM users`,
  "INSERT INTO password_resets (token_hash, user_id, created_at, expires_at) SELECT 'reset ' || id, id, 5, 9 FROM users",
  `INSERT INTO passkeys (id, organisation_id, user_id, name, public_key, counter, transports, counts_for_threshold, created_at)
   SELECT 'pk_' || id, organisation_id, id, 'key', 'key', 0, '[]', rowid % 2, 5 FROM users`,
  `INSERT INTO passkey_approvals SELECT 'approval ' || id, user_id, id, 'wrt', 1, 'release', NULL, '{}', 5, 9, NULL FROM passkeys`,
  "INSERT INTO auth_sessions (token_hash, user_id, mode, created_at, expires_at) SELECT 'other ' || token_hash, user_id, mode, created_at, expires_at FROM auth_sessions",
  "UPDATE auth_sessions SET network = '192.0.2.0/24'",
  "UPDATE purchases SET next_check_at = 7 WHERE next_check_at IS NOT NULL",
  "UPDATE planned_notices SET due_at = 7",
  "UPDATE chain_transfers SET block = 3 WHERE block IS NOT NULL",
  "UPDATE agents SET status = 'killed' WHERE position IN (SELECT agent FROM warrants WHERE state = 'held')",
  "UPDATE chain_transactions SET state = 'open', block = NULL, mined_hash = NULL WHERE (chain_id, wallet, nonce) IN (SELECT chain_id, wallet, nonce FROM payout_transactions WHERE judged = 1)",
];

/** Without the guards, which have tests of their own. */
function makeUp(): void {
  const guards = sqlite
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
    .all();
  for (const { name } of guards) sqlite.run(`DROP TRIGGER "${name}"`);
  for (const statement of MADE_UP) sqlite.run(statement);
}

async function copyRows(): Promise<void> {
  const columns = (await sql`
    SELECT table_name::text, column_name::text FROM information_schema.columns WHERE table_schema = 'public' ORDER BY ordinal_position
  `) as { readonly table_name: string; readonly column_name: string }[];
  const tables = Map.groupBy(columns, ({ table_name: table }) => table);
  // No table waits for those that it refers to.
  await sql`SET session_replication_role = replica`;
  for (const [table, of] of tables) {
    const there = sqlite.query<{ name: string }, []>(`SELECT name FROM pragma_table_info('${table}')`).all();
    if (there.length === 0) continue;
    const kept = [...there.map(({ name }) => name), "rowid"];
    const names = of.map(({ column_name: name }) => name).filter((name) => kept.includes(name));
    const list = names.map((name) => `"${name}"`).join(", ");
    const insert = toPostgres(`INSERT INTO "${table}" (${list}) VALUES (${names.map(() => "?").join(", ")})`);
    // The newest first: without an order PostgreSQL gives rows as they were written.
    const rows = sqlite.query(`SELECT ${list} FROM "${table}" ORDER BY rowid DESC`).values();
    for (const row of rows as SqlValue[][]) {
      const { text, params } = insert.bind(row);
      await sql.unsafe(text, [...params]);
    }
  }
}

/** Asks all that readers and commands ask, and notes every statement. */
function askEverything(): void {
  const watching = watchStatements((_, ran) => {
    if (ran.way === "run") return;
    const of = asked.get(ran.text) ?? new Map<string, Ran>();
    asked.set(ran.text, of.set(shown(ran.values), ran));
  });
  const connection = connect(ledgerFile(folder), { readonly: true });
  askEveryRead(createSqlReader(connection), sqlite);
  askEveryLookUp(connection, sqlite);
  askForTheLog();
  watching.end();
  connection.raw.close();
}

/** What the log asks before it is written. */
function askForTheLog(): void {
  const { raw, tables } = connect(ledgerFile(folder), { readonly: false });
  const log = createLogWriter({ raw, tables }, false);
  raw.run("BEGIN");
  log.extend(2);
  log.keepCheckpoint({ size: 0, root: new Uint8Array(32), note: "" });
  log.keepStatement({ number: 0, note: "", seed: "", entryHash: "" });
  raw.run("ROLLBACK");
  raw.close();
}

/** Values as text. What is a bigint in one engine and not in the other differs. */
const shown = (value: unknown): string =>
  JSON.stringify(value, (_, part) => {
    if (typeof part === "bigint") return `${part}n`;
    // A Buffer is JSON by itself.
    if (part?.type === "Buffer") return Buffer.from(part).toHex();
    return part instanceof Uint8Array ? part.toHex() : part;
  });

/** What an answer says. Of a statement that asks for any row, only whether there is one: its caller looks at nothing else. */
const said = (text: string, answer: unknown): string =>
  /\blimit \S+$/i.test(text) && !/\border by\b/i.test(text) ? `${isNothing(answer)}` : shown(answer);

/** The rows of a statement on SQLite, as its caller gets them. */
function onSqlite({ text, way, values }: Ran): unknown {
  const statement = sqlite.query<unknown, SqlValue[]>(text);
  if (way === "get") return statement.get(...values);
  return way === "all" ? statement.all(...values) : statement.values(...values);
}

const isNothing = (answer: unknown): boolean =>
  answer === null || (Array.isArray(answer) && answer.length === 0);

/** The rows that a client got as a caller of SQLite's would get them. */
const answered = (way: Ran["way"], rows: readonly unknown[]): unknown =>
  way === "get" ? (rows[0] ?? null) : rows;

async function onPostgres(statement: Translated, { way, values }: Ran): Promise<unknown> {
  const { text, params } = statement.bind(values);
  const query = sql.unsafe(text, [...params]);
  return answered(way, [...(way === "values" ? await query.values() : await query)]);
}

/** The answers to questions of one signature, in one statement. */
async function together(statement: Translated, questions: readonly Ran[]): Promise<readonly unknown[]> {
  const way = questions[0]?.way ?? "all";
  const { text, columns } = statement.group(
    questions.map(({ values }) => values),
    way === "get" ? "first" : "all",
  );
  const query = sql.unsafe(
    text,
    columns.map(({ type, values }) => arrayOf(type, values)),
  );
  const rows: readonly (readonly [bigint, unknown])[] =
    way === "values"
      ? (await query.values()).map(([ord, ...row]: [bigint, ...unknown[]]) => [ord, row])
      : (await query).map(({ ord, ...row }: { readonly ord: bigint }) => [ord, row]);
  return questions.map((_, at) =>
    answered(
      way,
      rows.filter(([ord]) => ord === BigInt(at + 1)).map(([, row]) => row),
    ),
  );
}

test(
  "every statement gives the same rows, in the same order by whatever plan",
  async () => {
    // Without indexes an order that a statement does not say is that in which the rows were written.
    for (const way of ["indexscan", "indexonlyscan", "bitmapscan"])
      await sql`SELECT set_config(${`enable_${way}`}, 'off', false)`;
    for (const [text, questions] of asked) {
      const statement = toPostgres(text);
      for (const ran of questions.values())
        expect([text, ran.values, said(text, await onPostgres(statement, ran))]).toEqual([
          text,
          ran.values,
          said(text, onSqlite(ran)),
        ]);
    }
    await sql`RESET ALL`;
  },
  TEST_MS,
);

test(
  "many questions in one statement have the same answers",
  async () => {
    let grouped = 0;
    for (const [text, questions] of asked) {
      const statement = toPostgres(text);
      const groups = Map.groupBy(questions.values(), ({ way, values }) =>
        [way, statement.signatureOf(values)].join(),
      );
      for (const group of groups.values()) {
        if (statement.signatureOf(group[0]?.values ?? []) === null) continue;
        grouped += 1;
        const answers = await together(statement, group);
        expect([text, answers.map((answer) => said(text, answer))]).toEqual([
          text,
          group.map((ran) => said(text, onSqlite(ran))),
        ]);
      }
    }
    expect(grouped).toBeGreaterThan(asked.size / 2);
  },
  TEST_MS,
);

test("every statement finds rows for some of its questions", () => {
  const empty = [...asked].filter(([, questions]) =>
    questions.values().every((ran) => isNothing(onSqlite(ran))),
  );
  expect(empty.map(([text]) => text)).toEqual([]);
});

test(
  "a list of a rare state is read from the index that is meant for it, however common the state is elsewhere",
  async () => {
    const columns = sqlite
      .query<{ name: string }, []>("SELECT name FROM pragma_table_info('warrants')")
      .all();
    const made: Readonly<Record<string, string>> = {
      position: "1000000 + number",
      id: "'wrt_' || number",
      scope: "1 + number % 2",
      state: "CASE number % 2 WHEN 0 THEN 'held' ELSE 'frozen' END",
      deadline: "number",
    };
    const list = columns.map(({ name }) => name);
    await sql`SET session_replication_role = replica`;
    await sql.unsafe(
      `INSERT INTO warrants (${list.join(", ")}) SELECT ${list.map((name) => made[name] ?? name).join(", ")}
       FROM (SELECT * FROM warrants WHERE state = 'held' LIMIT 1) AS one, generate_series(1, 50000) AS number`,
    );
    await sql.unsafe("ANALYZE warrants").simple();
    const newestHeld = [...asked.keys()].filter((text) =>
      /WHERE scope = \?1 AND state = 'held' AND position < \?4 [^']* ORDER BY position DESC/.test(text),
    );
    const { text, params } = toPostgres(newestHeld[0] ?? "").bind([2n, 10, 0, 2n ** 62n, 0n]);
    const plan: unknown[] = await sql.unsafe(`EXPLAIN ${text}`, [...params]).values();
    expect(plan.join().match(/Backward using \w+/g)).toEqual(["Backward using warrants_by_state"]);
  },
  TEST_MS,
);
