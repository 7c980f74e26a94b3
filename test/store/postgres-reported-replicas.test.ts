import { expect, test } from "bun:test";
import type { Answer, Sessions } from "../../src/store/postgres/client.ts";
import { reportedReplicas } from "../../src/store/postgres/reported-replicas.ts";

/** What a server says of its replicas (docs/postgresql, "Watch it"). */

const REPLICA = { name: "walreceiver", isSynchronous: true, lagMs: 3 };

function setUp() {
  const server = { asked: 0, released: 0, answer: async () => [[REPLICA]] as unknown as readonly Answer[] };
  const clock = { now: 0 };
  const sessions = {
    reserve: async () => {
      server.asked += 1;
      return {
        exchange: () => server.answer(),
        release: () => {
          server.released += 1;
        },
      };
    },
  } as unknown as Sessions;
  return { server, clock, replicas: reportedReplicas(sessions, () => clock.now) };
}

test("whoever asks while it is asked, or within a second after, shares the answer", async () => {
  const { server, clock, replicas } = setUp();
  const answered = Promise.withResolvers<readonly Answer[]>();
  const { answer } = server;
  server.answer = () => answered.promise;
  const first = replicas();
  clock.now = 5_000;
  const second = replicas();
  answered.resolve(await answer());
  expect([await first, await second]).toEqual([[REPLICA], [REPLICA]]);
  clock.now += 999;
  expect(await replicas()).toEqual([REPLICA]);
  expect([server.asked, server.released]).toEqual([1, 1]);
  server.answer = answer;
  clock.now += 1;
  await replicas();
  expect([server.asked, server.released]).toEqual([2, 2]);
});

test("a server that does not say it has none", async () => {
  const { server, replicas } = setUp();
  server.answer = async () => {
    throw new Error('relation "pg_stat_replication" does not exist');
  };
  expect(await replicas()).toEqual([]);
  expect(server.released).toBe(1);
});
