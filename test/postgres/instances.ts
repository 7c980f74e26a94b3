/** What the instances of one ledger agree on: over a real PostgreSQL, and by a process that is alone. */
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from "bun:test";
import { join } from "node:path";
import { isRefusal } from "../../src/core/errors.ts";
import { ALONE, type Instances } from "../../src/store/instances.ts";
import { createClaims } from "../../src/store/postgres/claims.ts";
import { postgresInstances } from "../../src/store/postgres/instances.ts";
import type { Standing } from "../../src/store/postgres/membership.ts";
import { type OneConnection, oneConnection } from "../../src/store/postgres/one-connection.ts";
import type { FaultyProxy } from "../support/faulty-proxy.ts";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import { until } from "../support/until.ts";
import { createConnections, through } from "./connections.ts";

setDefaultTimeout(120_000);
/** Shorter than the server's, so that a test sees an end, and long enough for a machine that has much else to do. */
const TIMES = { everyMs: 200, aheadMs: 3_000, waitMs: 1_500 };
const SETTINGS = { HOLDFAST_BASE_URL: "https://h.example" };

let postgres: Postgres;
let database: string;
const { connectTo, newProxy, closeAll, closing } = createConnections(() => postgres.port);

beforeAll(async () => {
  postgres = await startPostgres();
});
beforeEach(async () => {
  database = await postgres.createDatabase();
  const text = await Bun.file(join(import.meta.dir, "../../migrations/postgres/0003_instances.sql")).text();
  await connectTo(database).unsafe(text).simple();
});
afterEach(closeAll);
afterAll(() => postgres.close());

let count = 0;
type Started = {
  readonly instances: Instances;
  readonly id: () => string;
  readonly proxy: FaultyProxy;
  readonly standings: Standing[];
  /** How far its clock is ahead of this process's, as where it was stopped for so long. */
  readonly clock: { aheadMs: number };
};

/** An instance behind a proxy of its own. */
async function create(): Promise<Started> {
  const proxy = await newProxy();
  const standings: Standing[] = [];
  const clock = { aheadMs: 0 };
  let id = "";
  const instances = postgresInstances({
    connect: () => connectTo(through(proxy, database), { connectionTimeout: 2 }),
    newId: () => {
      id = `ins_${++count}`;
      return id;
    },
    steadyNow: () => performance.now() + clock.aheadMs,
    onStanding: (standing) => standings.push(standing),
    times: TIMES,
  });
  closing.push(instances.leave);
  return { instances, id: () => id, proxy, standings, clock };
}

async function start(settings: Readonly<Record<string, string>> = SETTINGS): Promise<Started> {
  const started = await create();
  expect(await started.instances.join(settings)).toBeNull();
  return started;
}

const holds = ({ instances }: Started, name = "deadlines"): boolean => instances.lease(name).token() !== null;
const takes = (started: Started, name?: string) =>
  until(`${started.id()} has the lease`, () => holds(started, name));

/** What holds for both. */
describe.each([
  ["alone", async () => ALONE],
  ["over PostgreSQL", async () => (await start()).instances],
])("an instance %s", (_, make) => {
  let instances: Instances;
  beforeEach(async () => {
    instances = await make();
  });

  test("is not lost, and has every lease and what belongs to one of all", async () => {
    expect([instances.isLost(), instances.isMine("whk_1")]).toEqual([false, true]);
    const lease = instances.lease("deadlines");
    expect(await until("it has the lease", () => lease.token() ?? false)).toBe(1);
  });

  test("does its work, answers it, and passes its fault on", async () => {
    expect(await instances.owning("wrt_1", async () => 7)).toBe(7);
    const broken = async () => {
      throw new Error("broken");
    };
    await expect(instances.owning("wrt_1", broken)).rejects.toThrow("broken");
    await until("nothing is owned", async () => (await instances.owned(["wrt_1"])).size === 0);
  });
});

test("of two, one has the lease, and gives it back when it leaves", async () => {
  const [one, other] = [await start(), await start()];
  await takes(one);
  expect(other.instances.lease("deadlines").token()).toBeNull();
  // Three renewals.
  const { roundTrips } = other.proxy;
  await until("the other has asked again", () => other.proxy.roundTrips > roundTrips + 3);
  expect([holds(one), holds(other)]).toEqual([true, false]);
  await one.instances.leave();
  await takes(other);
  expect(other.instances.lease("deadlines").token()).toBe(2);
});

test("the lease of one that is cut off is taken at its end and no sooner, and it stops at once", async () => {
  const [one, other] = [await start(), await start()];
  await takes(one);
  expect(holds(other)).toBe(false);
  const cutAt = performance.now();
  one.proxy.hold("to server");
  await until("one has stopped", () => !holds(one));
  // It does not wait for the end.
  expect(performance.now() - cutAt).toBeLessThan(0.8 * TIMES.aheadMs);
  expect([holds(other), one.standings, one.instances.isLost()]).toEqual([false, ["not_renewed"], false]);
  await takes(other);
  expect(performance.now() - cutAt).toBeGreaterThan(TIMES.aheadMs / 2);
  await until("one is lost", () => one.instances.isLost());
  await expect(one.instances.owning("wrt_1", async () => {})).rejects.toThrow("nothing was done");
  one.proxy.pass();
  await until("one is an instance again", () => !one.instances.isLost());
  expect([holds(one), holds(other)]).toEqual([false, true]);
});

test("what a dead one has is taken in time although the database's clock was set back; what a live one has is not", async () => {
  const [one, other, third] = [await start(), await start(), await start()];
  await takes(one, "of the dead");
  await takes(other, "of the living");
  const work = other.instances.owning("wrt_1", () => new Promise(() => {}));
  work.catch(() => {});
  await until("its work is known", async () => (await third.instances.owned(["wrt_1"])).size === 1);
  for (const name of ["of the dead", "of the living"]) expect(holds(third, name)).toBe(false);
  one.proxy.hold("to server");
  await until("its last renewal has ended", () => !holds(one, "of the dead"));
  // As if an hour of the database's clock were yet to come again.
  const sql = connectTo(database);
  await sql`UPDATE leases SET until = until + interval '1 hour' WHERE isfinite(until)`;
  await sql`UPDATE instances_running SET seen_until = seen_until + interval '1 hour'`;
  await takes(third, "of the dead");
  expect(holds(other, "of the living")).toBe(true);
  expect([...(await third.instances.owned(["wrt_1"]))]).toEqual(["wrt_1"]);
  await until("the dead one is gone", async () => {
    const rows: { id: string }[] = await sql`SELECT id FROM instances_running`;
    return !rows.some(({ id }) => id === one.id());
  });
  expect(other.standings).toEqual([]);
});

test("one that was stopped for long holds nothing from the first moment on", async () => {
  const one = await start();
  await takes(one);
  one.clock.aheadMs = TIMES.aheadMs;
  expect([holds(one), one.instances.isLost(), one.instances.isMine("whk_1")]).toEqual([false, true, false]);
  one.clock.aheadMs = 0;
});

test("when the database dies, no instance holds or begins anything; when it is back, they go on", async () => {
  const all = [await start(), await start()];
  await until("one has the lease", () => all.some((one) => holds(one)));
  await postgres.kill();
  await until("nobody has it", () => !all.some((one) => holds(one)));
  await until("all are lost", () => all.every(({ instances }) => instances.isLost()));
  for (const { standings } of all) await until("it says so", () => standings.at(-1) === "lost");
  await postgres.start();
  await until("all are instances again", () => !all.some(({ instances }) => instances.isLost()));
  await until("one has the lease", () => all.some((one) => holds(one)));
});

test("two never have one lease, and its token only rises, whatever breaks", async () => {
  const all = [await start(), await start(), await start()];
  const names = ["a", "b", "c"];
  const leases = names.map((name) => all.map(({ instances }) => instances.lease(name)));
  const newest = names.map(() => 0);
  const holders = names.map(() => new Set<number>());
  const look = () => {
    for (const [name, of] of leases.entries()) {
      const held = of.flatMap((lease, index) => {
        const token = lease.token();
        return token === null ? [] : [{ index, token }];
      });
      expect(held.length).toBeLessThanOrEqual(1);
      const [holder] = held;
      if (!holder) continue;
      expect(holder.token).toBeGreaterThanOrEqual(newest[name]!);
      newest[name] = holder.token;
      holders[name]!.add(holder.index);
    }
  };
  const breaks: ((proxy: FaultyProxy) => void)[] = [
    (proxy) => proxy.hold("to server"),
    (proxy) => proxy.hold("to client"),
    (proxy) => proxy.drop(),
    (proxy) => proxy.halve("to client"),
    (proxy) => proxy.delay(150),
  ];
  const any = <Item>(of: readonly Item[]): Item => of[Math.floor(Math.random() * of.length)]!;
  const endsAt = performance.now() + 25_000;
  for (let round = 0; performance.now() < endsAt; round++) {
    if (round % 200 === 0) {
      // One that holds a lease, where there is one; the others may be broken still.
      const holding = all.find((one) => names.some((name) => holds(one, name))) ?? any(all);
      any(all).proxy.pass();
      any(breaks)(holding.proxy);
    }
    look();
    await Bun.sleep(5);
  }
  // Something was handed over: else nothing was tried.
  expect(Math.max(...newest)).toBeGreaterThan(1);
  expect(Math.max(...holders.map(({ size }) => size))).toBeGreaterThan(1);
});

test("what one works on is known to all, until it has ended or the instance is dead", async () => {
  const [one, other] = [await start(), await start()];
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  const begun = Promise.withResolvers<readonly string[]>();
  const both = ["wrt_1", "wrt_2", "wrt_3"];
  const first = one.instances.owning("wrt_1", async () => {
    // Known before the work begins.
    begun.resolve([...(await other.instances.owned(both))]);
    await gates[0].promise;
  });
  expect(await begun.promise).toEqual(["wrt_1"]);
  const second = one.instances.owning("wrt_2", () => gates[1].promise);
  await until("both are", async () => (await other.instances.owned(both)).size === 2);
  gates[0].resolve();
  await first;
  await until("one is", async () => `${[...(await other.instances.owned(both))]}` === "wrt_2");

  one.proxy.drop();
  expect([...(await other.instances.owned(both))]).toEqual(["wrt_2"]);
  await until("its claims are gone with it", async () => (await other.instances.owned(both)).size === 0);
  one.proxy.pass();
  await until("it is back, with what it still works on", async () => {
    return `${[...(await other.instances.owned(both))]}` === "wrt_2";
  });
  gates[1].resolve();
  await second;
  await until("nothing is", async () => (await other.instances.owned(both)).size === 0);
});

test("work that two instances try is owned until both have ended", async () => {
  const [one, other] = [await start(), await start()];
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  const begun = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  const works = [one, other].map(({ instances }, index) =>
    instances.owning("wrt_1", () => {
      begun[index]!.resolve();
      return gates[index]!.promise;
    }),
  );
  await Promise.all(begun.map(({ promise }) => promise));
  const again = one.instances.owning("wrt_1", async () => {});
  await again;
  gates[0].resolve();
  await works[0];
  expect([...(await one.instances.owned(["wrt_1"]))]).toEqual(["wrt_1"]);
  gates[1].resolve();
  await works[1];
  await until("nobody owns it", async () => (await one.instances.owned(["wrt_1"])).size === 0);
});

test("work whose claim got no answer does not begin, and leaves nothing owned for ever", async () => {
  const sql = connectTo(database);
  await sql`INSERT INTO instances_running VALUES ('ins_own', clock_timestamp(), clock_timestamp() + '1 hour', '{}')`;
  const real = oneConnection(() => connectTo(database), 60_000);
  let isAnswerLost = true;
  const run: OneConnection["run"] = async (work) => {
    const done = await real.run(work);
    if (isAnswerLost) throw new Error("no answer");
    return done;
  };
  const claims = createClaims(
    { ...real, run },
    () => "ins_own",
    () => new Error("nothing was done"),
  );
  let hasBegun = false;
  const work = async () => {
    hasBegun = true;
  };
  await expect(claims.during("wrt_1", work)).rejects.toThrow("nothing was done");
  expect(hasBegun).toBe(false);
  isAnswerLost = false;
  await claims.flush();
  expect([...(await sql`SELECT id FROM claims`)]).toEqual([]);
});

test("what belongs to one at a time belongs to exactly one, and is taken over when it dies", async () => {
  const all = [await start(), await start(), await start()];
  const endpoints = Array.from({ length: 60 }, (_, index) => `whk_${index}`);
  const ownersOf = (id: string) => all.filter(({ instances }) => instances.isMine(id));
  const isShared = () => endpoints.every((id) => ownersOf(id).length === 1);
  await until("all know of all", isShared);
  const before = endpoints.map((id) => ownersOf(id)[0]!.id());
  const shares = all.map((one) => before.filter((id) => id === one.id()).length);
  expect(Math.min(...shares)).toBeGreaterThan(5);

  const [dead] = all;
  const deadId = dead!.id();
  dead!.proxy.drop();
  await until("the others have shared it", () => dead!.instances.isLost() && isShared());
  // Nothing else has changed hands.
  const after = endpoints.map((id) => ownersOf(id)[0]!.id());
  expect(after.filter((id, index) => before[index] !== deadId && id !== before[index])).toEqual([]);
  expect(after).not.toContain(deadId);
});

test("one whose setting differs from a live one's is refused by its name, of two at once the second", async () => {
  const keys = { HOLDFAST_BASE_URL: "https://h.example", HOLDFAST_SIGNING_KEY: "a hash" };
  const one = await start(keys);
  const other = await create();
  const refused = await other.instances.join({ ...keys, HOLDFAST_SIGNING_KEY: "another hash" });
  expect(refused).toEqual({
    refused: "validation_failed",
    message: `HOLDFAST_SIGNING_KEY: differs from that of ${one.id()}, which serves the same ledger now: all its instances must have the same`,
  });
  // What another version does not know of is no difference.
  await start({ ...keys, HOLDFAST_NEW: "1" });
  await one.instances.leave();

  const fresh = [await create(), await create()];
  const joined = await Promise.all(
    fresh.map(({ instances }, index) => instances.join({ ...keys, HOLDFAST_BASE_URL: `https://${index}` })),
  );
  // One of an instance that has not left, and so both are refused.
  expect(joined.filter(isRefusal)).toHaveLength(2);
});

test("of two that start at once with different settings, one is refused", async () => {
  for (let round = 0; round < 5; round++) {
    const two = [await create(), await create()];
    const joined = await Promise.all(
      two.map(({ instances }, index) => instances.join({ HOLDFAST_BASE_URL: `https://${index}` })),
    );
    expect(joined.filter((one) => one === null)).toHaveLength(1);
    for (const { instances } of two) await instances.leave();
  }
});

test("a command beside the servers is no instance: it has no lease, and sees what they work on", async () => {
  const [server, command] = [await start(), await create()];
  await takes(server);
  const gate = Promise.withResolvers<void>();
  const work = server.instances.owning("pur_1", () => gate.promise);
  await until("it is seen", async () => (await command.instances.owned(["pur_1"])).has("pur_1"));
  expect([command.instances.lease("deadlines").token(), command.instances.isLost()]).toEqual([null, false]);
  // Nobody is there who would delete the row of a dead one.
  server.proxy.drop();
  await until("it is not seen once its instance is dead", async () => {
    return (await command.instances.owned(["pur_1"])).size === 0;
  });
  gate.resolve();
  await work;
});
