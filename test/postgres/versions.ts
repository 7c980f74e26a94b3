/** A newer version brings the tables up to date while instances of the version before serve (docs/postgresql, "New versions"). */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { SQL } from "bun";
import { migratePostgres, postgresMigrations } from "../../src/store/postgres/migrate.ts";
import type { Installation } from "../support/executable.ts";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import { type Buyer, createBuyer, installed, settingsOn } from "./installed.ts";

const TEST_MS = 120_000;
/** A change that the next version might make. */
const OF_NEXT = {
  name: "9999_of_next",
  sql: "ALTER TABLE warrants ADD COLUMN of_next int8 NOT NULL DEFAULT 7; CREATE INDEX of_next ON warrants (of_next)",
  hash: "of next",
};
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
  "an instance serves while a newer version changes the tables, and stops once it may not write to them",
  async () => {
    const server = await program.serve();
    let changed = false;
    const statuses: number[] = [];
    const serving = (async () => {
      while (!changed) statuses.push((await open(server))[0]);
    })();
    const next = { version: "0.2.0", newInstance: () => ({ id: "ins_none", createdAt: 0 }) };
    await migratePostgres(sql, next, [...postgresMigrations(), OF_NEXT]);
    changed = true;
    await serving;
    for (let count = 0; count < 3; count++) statuses.push((await open(server))[0]);
    expect(new Set(statuses)).toEqual(new Set([201]));
    const [{ of_next, opened }] = await sql`SELECT min(of_next) AS of_next, count(*) AS opened FROM warrants`;
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
