/**
 * The engine on PostgreSQL while connections and the server are lost: what was answered is there once, what was not is there once at most
 * and its key replays, and the store goes on by itself.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { SQL } from "bun";
import type { KeyCaller } from "../../src/core/roles.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { KEPT_MS_MAX } from "../../src/store/postgres/ledger-watch.ts";
import type { FaultyProxy } from "../support/faulty-proxy.ts";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import {
  codeOf,
  createCaller,
  createStage,
  fresh,
  idempotencyOf,
  must,
  open,
  type Stage,
  warrantIn,
} from "../support/stage.ts";
import { until } from "../support/until.ts";
import { createConnections, through } from "./connections.ts";
import { type Instance, lockOf, lockOutside, openInstance, waitingForLocks } from "./store-context.ts";

setDefaultTimeout(120_000);
const ROUNDS = 40;
/** How long an instance waits for the database that is to give up soon. */
const HASTY = { exchangeMs: 3_000, unknownMs: 500 };

let postgres: Postgres;
let proxy: FaultyProxy;
let instance: Instance;
/** Another instance, with a proxy of its own. */
let hasty: Instance;
let hole: FaultyProxy;
let sql: SQL;
let stage: Stage;
let caller: KeyCaller;
const { closing, connectTo, newProxy, closeAll } = createConnections(() => postgres.port);

beforeAll(async () => {
  postgres = await startPostgres();
  const url = await postgres.createDatabase();
  proxy = await newProxy();
  instance = await openInstance(through(proxy, url));
  closing.push(instance.close);
  hole = await newProxy();
  hasty = await openInstance(through(hole, url), {}, { patience: HASTY });
  closing.push(hasty.close);
  sql = connectTo(url, { max: 3 });
  stage = await createStage(instance.ctx, { funds: "100000000" });
  caller = await createCaller(stage);
});
afterAll(async () => {
  await closeAll();
  await postgres.close();
});

type Outcome = { readonly key: string; readonly id: string | null };

/** Opens a warrant with a key of its own. Its id is null where the caller was told nothing but that it failed. */
async function attempt(key = fresh("key"), { ctx } = instance): Promise<Outcome> {
  const answer = await open({ ...stage, ctx }, caller, {}, idempotencyOf(key)).catch(() => null);
  if (answer === null) return { key, id: null };
  expect(codeOf(answer)).toBe(201);
  return { key, id: warrantIn(answer).id };
}

/** Asks again with the same keys, as a caller does who was not answered: each is the same warrant, and none was held twice. */
async function mustBeOnce(outcomes: readonly Outcome[]): Promise<void> {
  for (const { key, id } of outcomes) {
    const again = await attempt(key);
    expect(again.id).not.toBeNull();
    if (id !== null) expect(again.id).toBe(id);
  }
  const [found] = await sql`
    SELECT (SELECT count(*) FROM warrants)::int AS warrants, (SELECT count(*) FROM idempotency_keys)::int AS keys,
      (SELECT count(*) FROM postings WHERE kind = 'hold')::int AS holds, (SELECT sum(held) FROM accounts)::int AS held,
      (SELECT sum(count) FROM warrant_counts)::int AS counted`;
  const { warrants } = found;
  expect(found).toEqual({
    warrants,
    keys: warrants,
    holds: warrants,
    held: warrants * 100,
    counted: warrants,
  });
  expect(instance.store.figures()).toMatchObject({ busy: 0, waiting: 0 });
}

const warrantsNow = async (): Promise<number> => (await sql`SELECT count(*)::int AS n FROM warrants`)[0].n;
const waits = () => until("a statement waits", async () => (await waitingForLocks(sql)) > 0);
/** All connections break, and later ones are as before. */
const breakAll = () => proxy.moveTo(postgres.port);
const lockAccount = () => lockOutside(sql, "SELECT 1 FROM accounts FOR UPDATE");

/** A warrant whose COMMIT waits for a lock, until that is let go. */
async function inCommit(by = instance) {
  const before = await warrantsNow();
  const letGo = await lockAccount();
  const attempted = attempt(fresh("key"), by);
  await waits();
  return { attempted, letGo, before };
}

/** A warrant whose COMMIT was done. The answer is held on its way. */
async function committedUnheard(by: Instance, through: FaultyProxy) {
  const { attempted, letGo, before } = await inCommit(by);
  through.hold("to client");
  await letGo();
  await until("it is committed", async () => (await warrantsNow()) === before + 1);
  return { attempted, before };
}

/** It is answered, and was done once. */
async function mustHaveOpened(attempted: Promise<Outcome>, before: number): Promise<void> {
  const outcome = await attempted;
  expect(outcome.id).not.toBeNull();
  await mustBeOnce([outcome]);
  expect(await warrantsNow()).toBe(before + 1);
}

test("the connection is lost before BEGIN", async () => {
  proxy.drop();
  const attempted = attempt();
  await until("it is tried again", () => instance.store.figures().retries > 0);
  proxy.pass();
  const outcome = await attempted;
  expect(outcome.id).not.toBeNull();
  await mustBeOnce([outcome]);
});

test("the connection is lost while the batch waits for its locks, and while it loads", async () => {
  const letGo = await lockOutside(sql, lockOf(stage.organisationId));
  const waiting = attempt();
  await waits();
  breakAll();
  await letGo();
  const again = await lockOutside(sql, lockOf(stage.organisationId));
  const loading = attempt();
  await waits();
  // The next that it sends after its locks.
  proxy.halve("to server");
  await again();
  const outcomes = await Promise.all([waiting, loading]);
  expect(outcomes.map(({ id }) => id)).not.toContain(null);
  await mustBeOnce(outcomes);
});

test("COMMIT was done and its answer is lost: the answer is found out", async () => {
  const { attempted, before } = await committedUnheard(instance, proxy);
  breakAll();
  proxy.pass();
  await mustHaveOpened(attempted, before);
});

test("the server ends the connection while COMMIT is under way: nothing was done, and it is tried again", async () => {
  const { attempted, letGo, before } = await inCommit();
  await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND datname = current_database()`;
  await letGo();
  await mustHaveOpened(attempted, before);
});

test("the connection is lost while COMMIT is under way: the transaction is waited for", async () => {
  const { attempted, letGo, before } = await inCommit();
  breakAll();
  await letGo();
  await mustHaveOpened(attempted, before);
});

test("a deposit without a key is recorded once, although the connection is lost while its COMMIT is under way", async () => {
  const depositsNow = async () => (await sql`SELECT count(*)::int AS n FROM deposits`)[0].n;
  const before = await depositsNow();
  const letGo = await lockAccount();
  const input = { organisation_id: stage.organisationId, mode: "live", amount: "1" } as const;
  const recorded = fundBalance(instance.ctx, MACHINE, input);
  await waits();
  proxy.part();
  // It is asked what became of it, and not done again, while it may still be committed.
  await until("the engine asks", async () => (await waitingForLocks(sql)) > 1);
  await letGo();
  expect(await recorded).toMatchObject({ amount: "1" });
  expect(await depositsNow()).toBe(before + 1);
});

test("packets to the server are lost after the locks: its transaction is ended by the server, and done again", async () => {
  const letGo = await lockOutside(sql, lockOf(stage.organisationId));
  const attempted = attempt();
  await waits();
  proxy.hold("to server");
  await letGo();
  await until("the server has ended it", async () => {
    const rows = await sql`SELECT 1 FROM pg_stat_activity
      WHERE application_name LIKE 'holdfast%' AND state = 'idle in transaction' AND datname = current_database()`;
    return rows.length === 0;
  });
  proxy.pass();
  const outcome = await attempted;
  await mustBeOnce([outcome]);
});

test("packets to the client are lost, and nobody closes the connection: the caller is told that it failed", async () => {
  // A connection asks once about each statement that is new to it: later the whole of a transaction is under way at once.
  await attempt(fresh("key"), hasty);
  const { attempted, before } = await committedUnheard(hasty, hole);
  const heldAt = performance.now();
  // The engine ends it by its own timer, and cannot find out what became of it: that takes no second such time.
  const outcome = await attempted;
  expect(outcome.id).toBeNull();
  expect(performance.now() - heldAt).toBeLessThan(2 * HASTY.exchangeMs);
  expect(hasty.store.figures().undecided).toBe(1);
  hole.pass();
  await mustBeOnce([outcome]);
  expect(await warrantsNow()).toBe(before + 1);
});

test("packets to the client are lost, and nobody closes the connections: reads fail in time, and later ones do not", async () => {
  const organisations = () => hasty.store.read((reader) => reader.organisations.list());
  const found = await organisations();
  hole.hold("to client");
  // More than there are connections.
  const lost = await Promise.allSettled(Array.from({ length: 20 }, () => organisations()));
  expect(new Set(lost.map(({ status }) => status))).toEqual(new Set(["rejected"]));
  hole.pass();
  expect(await organisations()).toEqual(found);
});

test("packets to the client are lost, and nobody closes the connection: keys that were looked up are looked up again", async () => {
  await until("the database answers", () => hasty.store.figures().isReachable);
  hole.hold("to client");
  const asked = Promise.all(["one", "another"].map((hash) => hasty.store.apiKey(hash)));
  await until("they have got no answer", () => !hasty.store.figures().isReachable);
  hole.pass();
  expect(await asked).toEqual([null, null]);
});

test("after a jump of the database's clock the newest commits of an instance count as young again", async () => {
  must(await open(stage, caller));
  const [{ id }] = await sql`SELECT id FROM commits ORDER BY at DESC LIMIT 1`;
  await sql`UPDATE commits SET at = at - ${KEPT_MS_MAX}::int8`;
  await until("it is young", async () => {
    const now = sql`(extract(epoch FROM clock_timestamp()) * 1000)::int8`;
    return (await sql`SELECT 1 FROM commits WHERE id = ${id} AND at > ${now} - 60000`).length === 1;
  });
});

test("packets to the client are lost, and nobody closes the connection: what others commit is heard of afterwards", async () => {
  const hasHeard = () => hasty.store.newsOfOthers() === null;
  await until("the database answers", () => hasty.store.figures().isReachable);
  hole.hold("to client");
  await until("a question has got no answer", () => !hasty.store.figures().isReachable);
  // What it had heard before.
  hasHeard();
  const outcome = await attempt();
  expect(hasHeard()).toBe(false);
  hole.pass();
  await until("it has heard of it", hasHeard);
  await mustBeOnce([outcome]);
});

test("the server is killed and started again under load", async () => {
  const attempted = Array.from({ length: 32 }, () => attempt());
  await until("some are committed", () => instance.store.figures().busy > 0);
  await postgres.kill();
  await postgres.start();
  await until("the tests' own client is back", () =>
    sql`SELECT 1`.then(
      () => true,
      () => false,
    ),
  );
  const outcomes = await Promise.all(attempted);
  const later = await attempt();
  expect(later.id).not.toBeNull();
  await mustBeOnce([...outcomes, later]);
});

test("connections break at any moment, again and again", async () => {
  const outcomes: Outcome[] = [];
  const faults = [
    breakAll,
    () => proxy.halve("to server"),
    () => proxy.halve("to client"),
    async () => {
      proxy.hold("to client");
      await Bun.sleep(Math.random() * 30);
      breakAll();
      proxy.pass();
    },
    async () => {
      proxy.hold("to server");
      await Bun.sleep(Math.random() * 30);
      breakAll();
      proxy.pass();
    },
  ];
  for (let round = 0; round < ROUNDS; round++) {
    const attempted = Array.from({ length: 4 }, () => attempt());
    const reads = Array.from({ length: 2 }, () =>
      instance.store.read(({ organisations }) => organisations.list()).catch(() => null),
    );
    await Bun.sleep(Math.random() * 30);
    await faults[round % faults.length]?.();
    outcomes.push(...(await Promise.all(attempted)));
    await Promise.all(reads);
  }
  proxy.pass();
  await mustBeOnce(outcomes);
  expect(await instance.store.read(({ organisations }) => organisations.list())).not.toEqual([]);
  expect(await instance.store.extendLog(10_000)).toBeGreaterThan(0);
  await instance.store.probe();
});
