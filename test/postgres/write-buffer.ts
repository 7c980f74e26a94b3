/** What a batch writes together is what its writes do one by one; and each is written after what guards of it look at. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { SQL } from "bun";
import fc from "fast-check";
import { migratePostgres } from "../../src/store/postgres/migrate.ts";
import { createWriteBuffer } from "../../src/store/postgres/write-buffer.ts";
import { LOOKS_AT } from "../../src/store/postgres/write-order.ts";
import type { SqlValue } from "../../src/store/sql/database.ts";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import { createConnections } from "./connections.ts";

setDefaultTimeout(120_000);

let postgres: Postgres;
let url: string;
let sql: SQL;
const { connectTo, closeAll } = createConnections(() => postgres.port);

beforeAll(async () => {
  postgres = await startPostgres();
  url = await postgres.createDatabase();
  sql = connectTo(url);
  await migratePostgres(sql, { version: "0.1.0", newInstance: () => ({ id: "ins_1", createdAt: 7 }) });
});
afterAll(async () => {
  await closeAll();
  await postgres.close();
});

type Write = { readonly text: string; readonly values: readonly SqlValue[] };

/** Statements as drizzle writes them, of tables with several ways to one row. */
const KEY_COLUMNS = '"position", "scope", "key", "fingerprint", "holder", "status", "body", "created_at"';
const key = fc.constantFrom("a", "b", "c");
const holder = fc.constantFrom("w1", "w2");
const number = fc.integer({ min: 1, max: 3 });
const bytes = new Uint8Array([1]);
const writes: fc.Arbitrary<Write> = fc.oneof(
  fc.tuple(key, holder).map(([k, h]) => ({
    text: `insert or rollback into "idempotency_keys" (${KEY_COLUMNS}) values (null, ?, ?, ?, ?, ?, ?, ?)`,
    values: [1, k, bytes, h, null, null, 1],
  })),
  fc.tuple(key).map(([k]) => ({
    text: `insert or rollback into "idempotency_keys" (${KEY_COLUMNS}) values (null, ?, ?, ?, ?, ?, ?, ?)`,
    values: [1, k, bytes, null, 200, "done", 1],
  })),
  fc.tuple(key, number).map(([k, status]) => ({
    text: 'update "idempotency_keys" set "holder" = NULL, "status" = ?, "body" = ? where ("idempotency_keys"."scope" = ? and "idempotency_keys"."key" = ?)',
    values: [status, "ended", 1, k],
  })),
  key.map((k) => ({
    text: 'delete from "idempotency_keys" where ("idempotency_keys"."scope" = ? and "idempotency_keys"."key" = ?)',
    values: [1, k],
  })),
  fc.tuple(key, number).map(([state, count]) => ({
    text: 'insert or rollback into "warrant_counts" ("scope", "agent", "state", "count") values (?, ?, ?, ?) on conflict ("warrant_counts"."scope","warrant_counts"."agent","warrant_counts"."state") do update set "count" = "warrant_counts"."count" + excluded.count',
    values: [1, 0, state, count],
  })),
  fc.tuple(key, number).map(([state, count]) => ({
    text: 'update "warrant_counts" set "count" = "warrant_counts"."count" + ? where ("warrant_counts"."scope" = ? and "warrant_counts"."agent" = ? and "warrant_counts"."state" = ?)',
    values: [-count, 1, 0, state],
  })),
  fc.tuple(key, number).map(([id, held]) => ({
    text: 'insert or rollback into "spend_sessions" ("position", "id", "agent_id", "amount_ceiling", "amount_spent", "warrant_count", "failure_budget", "failure_count", "expires_at", "created_at", "amount_held") values (null, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict ("spend_sessions"."id") do update set "amount_spent" = excluded."amount_spent", "amount_held" = excluded."amount_held"',
    values: [id, "agt", 100, held, 0, 1, 0, 1, 1, held],
  })),
  fc.tuple(key, key).map(([id, endpoint]) => ({
    text: 'insert or rollback into "push_subscriptions" ("id", "organisation_id", "user_id", "endpoint", "p256dh", "encrypted_auth", "name", "created_at") values (?, ?, ?, ?, ?, ?, ?, ?) on conflict ("push_subscriptions"."id") do update set "name" = excluded."name"',
    values: [id, "org", "usr", endpoint, "p", "e", `${id} ${endpoint}`, 1],
  })),
  key.map((id) => ({
    text: 'delete from "push_subscriptions" where "push_subscriptions"."id" = ?',
    values: [id],
  })),
);

const deleteByEndpoint: fc.Arbitrary<Write> = key.map((endpoint) => ({
  text: 'delete from "push_subscriptions" where "push_subscriptions"."endpoint" = ?',
  values: [endpoint],
}));
const renameByEndpoint: fc.Arbitrary<Write> = fc.tuple(key, key).map(([endpoint, name]) => ({
  text: 'update "push_subscriptions" set "name" = ? where "push_subscriptions"."endpoint" = ?',
  values: [name, endpoint],
}));
const anyWrite = fc.oneof({ weight: 6, arbitrary: writes }, deleteByEndpoint, renameByEndpoint);

const TABLES = ["idempotency_keys", "warrant_counts", "spend_sessions", "push_subscriptions"];
const positions = Array.from({ length: 100 }, (_, at) => at + 1);

/** Runs statements in a transaction of its own on empty tables, and answers the rows then; null where one is refused. */
async function rowsAfter(statements: (sql: Pick<SQL, "unsafe">) => Promise<void>): Promise<unknown> {
  const connection = await sql.reserve();
  try {
    await connection`BEGIN`;
    await statements(connection);
    const tables = await Promise.all(
      TABLES.map(async (table) => [
        ...(await connection.unsafe(`SELECT * FROM ${table} ORDER BY ${placeIn(table)}`)),
      ]),
    );
    return tables;
  } catch (error) {
    if (typeof (error as { errno?: unknown }).errno === "string") return null;
    throw error;
  } finally {
    await connection`ROLLBACK`;
    connection.release();
  }
}
const placeIn = (table: string) =>
  table === "idempotency_keys" || table === "spend_sessions" ? "position" : "rowid";

test("any writes through the buffer give the tables that they give one by one", async () => {
  // Without guards and foreign keys: they are the next test's.
  await sql`SELECT set_config('session_replication_role', 'replica', false)`;
  let compared = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(anyWrite, { maxLength: 12 }), async (list) => {
      const alone = createWriteBuffer(positions);
      const oneByOne = await rowsAfter(async (connection) => {
        for (const { text, values } of list) {
          alone.add(text, values);
          for (const statement of alone.take())
            await connection.unsafe(statement.text, statement.params as unknown[]);
        }
      });
      // What is refused one by one is never written.
      if (oneByOne === null) return;
      compared += 1;
      const together = createWriteBuffer(positions);
      for (const { text, values } of list) together.add(text, values);
      const statements = together.take();
      expect(
        await rowsAfter(async (connection) => {
          for (const { text, params } of statements) await connection.unsafe(text, params as unknown[]);
        }),
      ).toEqual(oneByOne);
    }),
    { numRuns: 1_500 },
  );
  expect(compared).toBeGreaterThan(100);
  await sql`SELECT set_config('session_replication_role', 'origin', false)`;
});

test("a change of a row that is not there is refused", async () => {
  const buffer = createWriteBuffer([]);
  buffer.add('update "warrants" set "version" = ? where "warrants"."position" = ?', [2, 12_345]);
  const [statement] = buffer.take();
  await expect(sql.unsafe(statement?.text ?? "", statement?.params as unknown[])).rejects.toMatchObject({
    errno: "22012",
  });
});

describe("the order of writes", () => {
  test("names every table that a foreign key or a guard looks at", async () => {
    const looked = new Set<string>();
    const keys: { table: string; at: string }[] =
      await sql`SELECT conrelid::regclass::text AS table, confrelid::regclass::text AS at FROM pg_constraint WHERE contype = 'f'`;
    for (const { table, at } of keys) looked.add(`${table} insert ${at}`);
    const names: { name: string }[] =
      await sql`SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`;
    const guards: { table: string; source: string; inserts: boolean; updates: boolean }[] = await sql`
      SELECT tgrelid::regclass::text AS table, prosrc AS source, (tgtype & 4) > 0 AS inserts, (tgtype & 16) > 0 AS updates
      FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid WHERE NOT tgisinternal`;
    for (const { table, source, inserts, updates } of guards) {
      for (const { name } of names) {
        if (!new RegExp(`\\b(FROM|JOIN|,)\\s+${name}\\b`, "i").test(source)) continue;
        if (inserts) looked.add(`${table} insert ${name}`);
        if (updates) looked.add(`${table} update ${name}`);
      }
    }
    const said = new Set(
      Object.entries(LOOKS_AT).flatMap(([table, { insert = [], update = [] }]) => [
        ...insert.map((at) => `${table} insert ${at}`),
        ...update.map((at) => `${table} update ${at}`),
      ]),
    );
    // Claims are not written by commands. The database makes scopes itself; and what a posting or a total looks at in its own table, one statement writes in its order.
    const apart = [
      "claims insert instances_running",
      "scopes insert organisations",
      "postings insert postings",
      "session_totals insert session_totals",
    ];
    expect([...looked].filter((one) => !said.has(one) && !apart.includes(one)).sort()).toEqual([]);
  });
});
