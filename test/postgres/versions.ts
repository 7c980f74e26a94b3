/** A newer version brings the tables up to date while instances of the version before serve (docs/postgresql, "New versions"). */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { SQL } from "bun";
import { migratePostgres, postgresMigrations } from "../../src/store/postgres/migrate.ts";
import type { Installation } from "../support/executable.ts";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import { createStage, must, open as openWarrant } from "../support/stage.ts";
import { type Buyer, createBuyer, installed, settingsOn } from "./installed.ts";
import { openInstance } from "./store-context.ts";

const TEST_MS = 120_000;
/** Tables that a batch uses first, amid its work and at its end. */
const TABLES = ["warrants", "scopes", "organisations", "postings", "commits", "locks"];
/** Changes that the next versions might make. Under load some of them meet a batch at every point of it. */
const OF_NEXT = [1, 2, 3, 4].flatMap((round) =>
  TABLES.map((table) => {
    const column = `of_next_${round}`;
    return {
      name: `9999_${column}_${table}`,
      sql: `ALTER TABLE ${table} ADD COLUMN ${column} int8 NOT NULL DEFAULT 7; CREATE INDEX ON ${table} (${column})`,
      hash: `${column} ${table}`,
    };
  }),
);
/** How many open at once. */
const BUYERS = 8;
const TOO_OLD =
  "the ledger in it was written by Holdfast 0.2.0, and may be opened by 0.2.0 or newer; this is 0.1.0";

let postgres: Postgres;
let program: Installation;
let open: Buyer;
let sql: SQL;
beforeAll(async () => {
  postgres = await startPostgres();
  const url = await postgres.createDatabase();
  program = installed(settingsOn(url));
  open = await createBuyer(program);
  sql = new SQL(url, { max: 1, bigint: true });
}, TEST_MS);
afterAll(async () => {
  await program.remove();
  await sql.close();
  await postgres.close();
}, TEST_MS);

test(
  "an instance serves while newer versions change the tables, and stops once it may not write to them",
  async () => {
    const server = await program.serve();
    let changed = false;
    const statuses: number[] = [];
    const serving = Array.from({ length: BUYERS }, async () => {
      while (!changed) statuses.push((await open(server))[0]);
    });
    const next = { version: "0.2.0", newInstance: () => ({ id: "ins_none", createdAt: 0 }) };
    try {
      for (const last of OF_NEXT.keys())
        await migratePostgres(sql, next, [...postgresMigrations(), ...OF_NEXT.slice(0, last + 1)]);
    } finally {
      changed = true;
    }
    await Promise.all(serving);
    const [{ deadlocks }] =
      await sql`SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`;
    expect(deadlocks).toBe(0n);
    for (let count = 0; count < 3; count++) statuses.push((await open(server))[0]);
    expect(new Set(statuses)).toEqual(new Set([201]));
    const [{ of_next, opened }] =
      await sql`SELECT min(of_next_4) AS of_next, count(*) AS opened FROM warrants`;
    expect([of_next, opened]).toEqual([7n, BigInt(statuses.length)]);
    const beside = await program.serve();
    expect((await open(beside))[0]).toBe(201);

    await sql`UPDATE instances SET oldest_writer = '0.2.0'`;
    const [status, { error }] = await open(server);
    expect([status, error.message]).toEqual([
      500,
      "This instance stops, and nothing was done. Retry with the same Idempotency-Key.",
    ]);
    expect([await server.ended(), await beside.ended()]).toEqual([1, 1]);
    expect(program.faults().filter((line) => line.includes(TOO_OLD)).length).toBeGreaterThanOrEqual(2);
    const [{ after }] = await sql`SELECT count(*) AS after FROM warrants`;
    expect(after).toBe(opened + 1n);
    await expect(program.json("organisations", "list")).rejects.toThrow(`HOLDFAST_DATABASE: ${TOO_OLD}`);
  },
  TEST_MS,
);

test(
  "nor does one that is too old extend the log or forget anything, although nobody asks anything of it",
  async () => {
    const url = await postgres.createDatabase();
    const all = [await openInstance(url), await openInstance(url), await openInstance(url)] as const;
    const watching = new SQL(url, { max: 1 });
    try {
      const [{ ctx }] = all;
      const stage = await createStage(ctx as never);
      must(await openWarrant(stage, stage.operator));
      expect(await all[0].store.extendLog(1)).toBe(1);
      must(await openWarrant(stage, stage.operator));
      await watching`UPDATE instances SET version = '0.2.0', oldest_writer = '0.2.0'`;
      const kept = async () =>
        (
          await watching`SELECT (SELECT count(*) FROM trace WHERE leaf_index IS NOT NULL)::int4 AS leaves,
          (SELECT count(*) FROM idempotency_keys)::int4 AS keys, (SELECT count(*) FROM log_checkpoints)::int4 AS checkpoints`
        )[0];
      const before = await kept();
      const later = Number.MAX_SAFE_INTEGER;
      const asked = [
        () => all[0].store.extendLog(1),
        () => all[1].store.keepCheckpoint({ size: 1, root: new Uint8Array(32), note: "" }),
        () =>
          all[2].store.forget(
            { idempotencyKeysBefore: later, endedBefore: later, deliveriesBefore: later },
            9,
          ),
      ];
      for (const ask of asked)
        await expect(ask()).rejects.toThrow("This instance stops, and nothing was done.");
      expect(await kept()).toEqual(before);
      for (const { store } of all) expect((await store.unfit).message).toBe(TOO_OLD);
    } finally {
      for (const { close } of all) await close();
      await watching.close();
    }
  },
  TEST_MS,
);
