/** The one connection by which an instance says that it is alive. */
import { expect, test } from "bun:test";
import type { SQL } from "bun";
import { oneConnection } from "../../src/store/postgres/one-connection.ts";

const WAIT_MS = 20;
const NEVER = new Promise<never>(() => {});

/** A client that does not even end. */
const stuck = { close: () => NEVER } as unknown as SQL;

test("work that gets no answer ends in time, although its client does not, and the next one begins on another", async () => {
  const healthy = { close: async () => {} } as unknown as SQL;
  const clients = [stuck, healthy];
  const connection = oneConnection(() => clients.shift() as SQL, WAIT_MS);
  await expect(connection.run(() => NEVER)).rejects.toThrow("the database has not answered within 20 ms");
  expect(await connection.run(async (sql) => sql === healthy)).toBe(true);
  await connection.close();
});

test("work that fails leaves its connection, and says why", async () => {
  const clients = [stuck, stuck];
  const connection = oneConnection(() => clients.shift() as SQL, WAIT_MS);
  await expect(connection.run(() => Promise.reject(new Error("refused")))).rejects.toThrow("refused");
  await connection.run(async () => {});
  expect(clients).toEqual([]);
  await connection.close();
});
