import { expect, test } from "bun:test";
import type { ReservedSQL } from "bun";
import { ConnectionLost, createSessions } from "../../src/store/postgres/client.ts";

/** What the engine does where Bun's client never answers, neither with a connection nor with its end. */

const PATIENCE = { exchangeMs: 20, unknownMs: 20 };
const never = new Promise<never>(() => {});

/** A connection whose statements are answered by `answers`, and which remembers what it was told. */
function connection(answers: Promise<unknown>) {
  const told: string[] = [];
  const query = { execute: () => answers };
  const sql = {
    unsafe: () => query,
    release: () => void told.push("release"),
    close: () => void told.push("close"),
  } as unknown as ReservedSQL;
  return { sql, told };
}

test("a connection that does not come is not waited for, and given back where it comes late", async () => {
  const { promise, resolve } = Promise.withResolvers<ReservedSQL>();
  const sessions = createSessions({ reserve: () => promise }, PATIENCE);
  expect(await sessions.reserve().catch((error) => error)).toBeInstanceOf(ConnectionLost);
  const { sql, told } = connection(never);
  resolve(sql);
  await promise;
  expect(told).toEqual(["release"]);
});

test("a connection that neither answers nor ends is closed and given up", async () => {
  const { sql, told } = connection(never);
  const sessions = createSessions({ reserve: () => Promise.resolve(sql) }, PATIENCE);
  const session = await sessions.reserve();
  const lost = await session.exchange([{ text: "SELECT 1", params: [] }]).catch((error) => error);
  expect(lost).toBeInstanceOf(ConnectionLost);
  session.release();
  expect(told).toEqual(["close"]);
  expect(sessions.health.isReachable).toBe(false);
});

test("a connection that answers in time is given back", async () => {
  const { sql, told } = connection(Promise.resolve([]));
  const sessions = createSessions({ reserve: () => Promise.resolve(sql) }, PATIENCE);
  const session = await sessions.reserve();
  expect(await session.exchange([{ text: "SELECT 1", params: [] }])).toHaveLength(1);
  session.release();
  expect(told).toEqual(["release"]);
  expect(sessions.health.isReachable).toBe(true);
});
