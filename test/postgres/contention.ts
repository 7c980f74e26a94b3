/** Reads that other transactions are in the way of, such as one that changes the tables, are made again from another snapshot. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { SQL } from "bun";
import { ContendedFault } from "../../src/core/errors.ts";
import { TRIES_MAX } from "../../src/store/postgres/contention.ts";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import { until } from "../support/until.ts";
import { createConnections } from "./connections.ts";
import { type Instance, lockOutside, openInstance, waitingForLocks } from "./store-context.ts";

const TEST_MS = 60_000;
/** The instance's own row, which every ledger has. */
const TABLE = "instances";

let postgres: Postgres;
let instance: Instance;
let sql: SQL;
const { closing, connectTo, closeAll } = createConnections(() => postgres.port);

beforeAll(async () => {
  postgres = await startPostgres();
  const url = await postgres.createDatabase();
  sql = connectTo(url, { max: 3 });
  instance = await openInstance(url);
  closing.push(instance.close);
}, TEST_MS);
afterAll(async () => {
  await closeAll();
  await postgres.close();
}, TEST_MS);

const lockTable = () => lockOutside(sql, `LOCK TABLE ${TABLE} IN ACCESS EXCLUSIVE MODE`);

/** How often statements have waited for a lock and got none. */
async function refusedLocks(): Promise<number> {
  return (await postgres.log()).split("canceling statement due to lock timeout").length - 1;
}

test(
  "a read that got no lock in time is made again",
  async () => {
    const before = await refusedLocks();
    const letGo = await lockTable();
    const reading = instance.store.read((reader) => reader.instance.get());
    await until("it has got no lock", async () => (await refusedLocks()) > before);
    await letGo();
    expect((await reading).id).toStartWith("ins_");
  },
  TEST_MS,
);

test(
  "so is one that was undone to end a deadlock, and another one that shared its transaction",
  async () => {
    let begun = 0;
    const shared = Promise.withResolvers<void>();
    const reads = Promise.withResolvers<void>();
    const first = instance.store.read(async (reader) => {
      begun += 1;
      await reader.organisations.list();
      await reads.promise;
      return (await reader.instance.get()).id;
    });
    const second = instance.store.read(async (reader) => {
      begun += 1;
      await reader.organisations.list();
      await shared.promise;
      return (await reader.passwordResets.byHash("none has it")) === null;
    });
    await until("they have read", async () => begun === 2 && (await holdsRead()));
    // The change of the tables has one of them, and waits for the other, which the transaction of the reads has.
    const changing = await sql.reserve();
    await changing`BEGIN`;
    // So it is the reads that the server undoes.
    await changing.unsafe("SET LOCAL deadlock_timeout = '1min'").simple();
    await changing.unsafe(`LOCK TABLE ${TABLE} IN ACCESS EXCLUSIVE MODE`).simple();
    const changed = changing.unsafe("LOCK TABLE organisations IN ACCESS EXCLUSIVE MODE").simple().execute();
    await until("the change waits for the reads", async () => (await waitingForLocks(sql)) === 1);
    reads.resolve();
    await changed;
    shared.resolve();
    await changing`ROLLBACK`;
    changing.release();
    expect((await first).startsWith("ins_")).toBe(true);
    expect(await second).toBe(true);
    expect(begun).toBe(4);
  },
  TEST_MS,
);

/** Whether a transaction that reads has a lock on `organisations`. */
async function holdsRead(): Promise<boolean> {
  const rows =
    await sql`SELECT 1 FROM pg_locks WHERE relation = 'organisations'::regclass AND mode = 'AccessShareLock'`;
  return rows.length > 0;
}

test(
  "one that they stay in the way of is given up",
  async () => {
    const before = await refusedLocks();
    const letGo = await lockTable();
    const reading = instance.store.read((reader) => reader.instance.get()).catch((error: unknown) => error);
    expect(await reading).toBeInstanceOf(ContendedFault);
    await letGo();
    expect(await refusedLocks()).toBe(before + 1 + TRIES_MAX);
  },
  TEST_MS,
);

test(
  "a key whose look-up got no lock in time is looked up again",
  async () => {
    const before = await refusedLocks();
    const letGo = await lockOutside(sql, "LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE");
    const looking = instance.store.apiKey("none has it");
    await until("it has got no lock", async () => (await refusedLocks()) > before);
    await letGo();
    expect(await looking).toBeNull();
  },
  TEST_MS,
);
