import { expect, test } from "bun:test";
import { problemOfConnection, problemOfServer, type ServerFacts } from "../../src/store/postgres/server.ts";

const GOOD: ServerFacts = {
  ...{ version: 150_018, encoding: "UTF8", fsync: "on", fullPageWrites: "on" },
  ...{ isReplica: false, readOnly: "off", now: 100_000 },
};
const ASKED = { from: 100_000, to: 100_010 };

test.each<[string, Partial<ServerFacts>]>([
  ["of the oldest version that will do", { version: 140_000 }],
  ["whose clock is 5 s behind", { now: ASKED.from - 5_000 }],
  ["whose clock is 5 s ahead", { now: ASKED.to + 5_000 }],
])("a server %s is taken", (_, facts) => {
  expect(problemOfServer({ ...GOOD, ...facts }, ASKED)).toBeNull();
});

test.each<[string, Partial<ServerFacts>]>([
  ["the server is PostgreSQL 13; it must be 14 or newer", { version: 130_022 }],
  ["the server is a replica, which cannot be written: name the primary", { isReplica: true, readOnly: "on" }],
  ["the server takes no writes: turn default_transaction_read_only off", { readOnly: "on" }],
  ["the server runs with fsync=off", { fsync: "off" }],
  ["the server runs with full_page_writes=off", { fullPageWrites: "off" }],
  ["the database's encoding is SQL_ASCII", { encoding: "SQL_ASCII" }],
  ["the clocks of the server and of this machine are 6 s apart", { now: ASKED.from - 6_000 }],
  ["the clocks of the server and of this machine are 6 s apart", { now: ASKED.to + 6_000 }],
])("a server is refused: %s", (problem, facts) => {
  expect(problemOfServer({ ...GOOD, ...facts }, ASKED)).toStartWith(problem);
});

test("a server that does not know a setting is too old, or behind a proxy", () => {
  const message = 'unrecognized configuration parameter "client_connection_check_interval"';
  expect(problemOfConnection(Object.assign(new Error(message), { errno: "42704" }))).toBe(
    `the server must be PostgreSQL 14 or newer, without a proxy that keeps its settings from it (${message})`,
  );
});
