/** What is answered while a synchronous standby is away: nothing that it may lack, since it may take the primary's place the next moment. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { KeyCaller } from "../../src/core/roles.ts";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import {
  codeOf,
  createCaller,
  createStage,
  fresh,
  idempotencyOf,
  open,
  type Stage,
  warrantIn,
} from "../support/stage.ts";
import { until } from "../support/until.ts";
import { createConnections } from "./connections.ts";
import { type Instance, openInstance } from "./store-context.ts";

setDefaultTimeout(120_000);
/** An instance that soon gives up to wait for its database. */
const HASTY = { exchangeMs: 2_000, unknownMs: 2_000 };

let primary: Postgres;
let standby: Postgres;
let url: string;
let instance: Instance;
let stage: Stage;
let caller: KeyCaller;
const { closing, connectTo, closeAll } = createConnections(() => primary.port);

beforeAll(async () => {
  primary = await startPostgres();
  url = await primary.createDatabase();
  instance = await openInstance(url, {}, { patience: HASTY });
  closing.push(instance.close);
  stage = await createStage(instance.ctx, { funds: "100000000" });
  caller = await createCaller(stage);
  standby = await primary.addSynchronousReplica();
});
afterAll(async () => {
  await closeAll();
  await standby.close();
  await primary.close();
});

/** The id of a warrant that is opened, or was opened under this key; null where the caller is told that it failed, or may have. */
async function attempt(key: string): Promise<string | null> {
  const answer = await open(stage, caller, {}, idempotencyOf(key)).catch(() => null);
  if (answer === null || codeOf(answer) !== 201) return null;
  return warrantIn(answer).id;
}
const waitingForStandby = () => primary.run("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
const read = (id: string) =>
  instance.store
    .read((reader) => reader.warrants.find(id))
    .then(
      (found) => (found ? "found" : "none"),
      () => "failed",
    );

test("a COMMIT whose wait for the standby was ended is not told before the standby has it", async () => {
  // Connections that are there already, and on which it is asked what became of it.
  await Promise.all(
    Array.from({ length: 4 }, () => instance.store.read((reader) => reader.organisations.list())),
  );
  expect(await attempt(fresh("key"))).not.toBeNull();
  await standby.kill();
  const key = fresh("key");
  const first = attempt(key);
  await until("its COMMIT waits for the standby", async () => (await waitingForStandby()).length > 0);
  await primary.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
  expect(await first).toBeNull();

  await standby.start();
  await primary.replicated();
  expect(await until("its key is answered", () => attempt(key))).not.toBeNull();
  const sql = connectTo(url, { max: 1 });
  expect(await sql`SELECT 1 FROM idempotency_keys WHERE key = ${key}`).toHaveLength(1);
});

test("what the primary alone has after a crash is told to nobody before its standby has it too", async () => {
  expect(await attempt(fresh("key"))).not.toBeNull();
  await standby.kill();
  const key = fresh("key");
  const first = attempt(key);
  await until("its COMMIT waits for the standby", async () => (await waitingForStandby()).length > 0);
  await primary.kill();
  await primary.start();
  const sql = connectTo(url, { max: 1 });
  const [{ id }] = await sql`SELECT w.id FROM warrants w ORDER BY position DESC LIMIT 1`;
  expect(await first).toBeNull();
  expect(await attempt(key)).toBeNull();
  expect(await read(id)).toBe("failed");

  await standby.start();
  await primary.replicated();
  const told = await until("its key is answered", () => attempt(key));
  expect(told).toBe(id);
  expect(await read(id)).toBe("found");
  await primary.kill();
  await standby.promote();
  const after = connectTo(standby.url(new URL(url).pathname.slice(1)), { max: 1 });
  expect(await after`SELECT 1 FROM warrants WHERE id = ${id}`).toHaveLength(1);
});
