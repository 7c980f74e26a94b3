import type { FaultyProxy } from "../support/faulty-proxy.ts";
import type { Postgres } from "../support/postgres-server.ts";
import type { Server } from "./program.ts";
import type { Random } from "./random.ts";

/** What can go wrong between instances of Holdfast and their database, and in which order it does. */

/** How long a connection to the database is broken at most, and how late it may be. */
const BROKEN_MS_MAX = 2_500;
const LATE_MS_MAX = 60;
/** Longer than an instance waits for an answer, and than the others wait for an instance. */
const LONG_MS = 25_000;

/** What a fault happens to. */
export type Parts = {
  readonly random: Random;
  /** Before the database, one for each instance. */
  readonly proxies: readonly FaultyProxy[];
  /** That of commands, and of a start that is cut short. */
  readonly commands: FaultyProxy;
  /** The instances; null for one that was killed. */
  readonly running: (Server | null)[];
  primary: Postgres;
  replica: Postgres;
  /** Starts one more instance, and kills it before it is ready. */
  cutStartShort(): Promise<void>;
  /** Sends no more requests to an instance, and answers none of those that it has. */
  avoid(server: Server): void;
};

type Happens = (parts: Parts) => Promise<void>;

type Breaks = (proxy: FaultyProxy, random: Random) => void;

/** How connections break, and how often they stay so for long: those of all instances, and those of one. */
const BROKEN: Readonly<
  Record<string, { readonly breaks: Breaks; readonly long: readonly [number, number] }>
> = {
  "connections to the database dropped": { breaks: (proxy) => proxy.drop(), long: [0, 0.6] },
  "questions to the database halved": { breaks: (proxy) => proxy.halve("to server"), long: [0, 0] },
  "answers of the database halved": { breaks: (proxy) => proxy.halve("to client"), long: [0, 0] },
  "black holes before the database": { breaks: (proxy) => proxy.hold("to server"), long: [0.2, 0.6] },
  "black holes behind the database": { breaks: (proxy) => proxy.hold("to client"), long: [0.2, 0.6] },
  "slow databases": {
    breaks: (proxy, random) => proxy.delay(1 + random.below(LATE_MS_MAX)),
    long: [0, 0],
  },
};

async function breakFor(ms: number, proxies: readonly FaultyProxy[], breaks: (proxy: FaultyProxy) => void) {
  for (const proxy of proxies) breaks(proxy);
  await Bun.sleep(ms);
  for (const proxy of proxies) proxy.pass();
}

const forAll: Record<string, Happens> = {};
const forOne: Record<string, Happens> = {};
for (const [name, { breaks, long }] of Object.entries(BROKEN)) {
  forAll[name] = ({ random, proxies, commands }) => {
    const ms = random.chance(long[0]) ? LONG_MS : random.below(BROKEN_MS_MAX);
    return breakFor(ms, [...proxies, commands], (proxy) => breaks(proxy, random));
  };
  // The others believe that it is dead, and take over what it is at. It runs, and may be asked anything.
  forOne[`${name}, of one instance`] = ({ random, proxies }) => {
    const ms = random.chance(long[1]) ? LONG_MS : random.below(BROKEN_MS_MAX);
    const proxy = proxies[random.below(proxies.length)] as FaultyProxy;
    return breakFor(ms, [proxy], () => breaks(proxy, random));
  };
}

/** The faults of each family, by their names in the tally. */
const FAULTS = {
  instance: { "instances killed": killSome, "instances stopped for too long": stopOne },
  database: { "kills of the database": killDatabase },
  connection: forAll,
  isolation: forOne,
  failover: {
    "primaries lost for good": loseForGood,
    "restarts of primaries without their replicas": restartAlone,
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, Happens>>>>;

type Family = keyof typeof FAULTS;
export type Fault = { readonly name: string; readonly family: Family; readonly happens: Happens };

/** The families of each five rounds, in any order. */
const FIVE_ROUNDS: readonly Family[] = ["instance", "database", "connection", "isolation", "failover"];

/** Answers the faults of one round after the other. Each five have one of every family, and each fault of a family comes once before any comes again. */
export function createSchedule(random: Random): () => Fault {
  const families = decks(random, () => FIVE_ROUNDS);
  const names = new Map(
    FIVE_ROUNDS.map((family) => [family, decks(random, () => Object.entries<Happens>(FAULTS[family]))]),
  );
  return () => {
    const family = families();
    const [name, happens] = (names.get(family) as () => [string, Happens])();
    return { name, family, happens };
  };
}

/** Deals a deck in a random order, and then again in another. */
function decks<Card>(random: Random, cards: () => readonly Card[]): () => Card {
  let left: Card[] = [];
  return () => {
    if (left.length === 0) left = [...cards()];
    const [card] = left.splice(random.below(left.length), 1);
    return card as Card;
  };
}

/** Sometimes one more, while it starts. */
async function killSome(parts: Parts): Promise<void> {
  const { random, running, cutStartShort } = parts;
  const count = 1 + random.below(running.length);
  for (let killed = 0; killed < count; killed++) await killOne(parts);
  if (random.chance(0.3)) await cutStartShort();
}

export async function killOne({ random, running }: Parts): Promise<void> {
  const at = random.below(running.length);
  await running[at]?.kill();
  running[at] = null;
}

/** Others take over what it was at. Then it goes on where it was. */
async function stopOne({ random, running, avoid }: Parts): Promise<void> {
  const server = running[random.below(running.length)];
  if (!server) return;
  server.pause();
  avoid(server);
  await Bun.sleep(LONG_MS);
  server.goOn();
}

/** The replica stays: without it the database commits nothing. */
async function killDatabase({ primary, random }: Parts): Promise<void> {
  await primary.kill();
  await Bun.sleep(random.below(BROKEN_MS_MAX));
  await primary.start();
  await primary.replicated();
}

/** What the primary has answered, its replica has. The replica takes its place, and gets a replica of its own. */
async function loseForGood(parts: Parts): Promise<void> {
  await parts.primary.kill();
  await failOver(parts);
}

/**
 * The primary commits nothing without its replica. Where it is restarted, it has all the same what waited for the replica, which nobody
 * may be told: the replica may take its place without that, or come back and get it.
 */
async function restartAlone(parts: Parts): Promise<void> {
  const { primary, replica, random } = parts;
  await replica.kill();
  await Bun.sleep(random.below(BROKEN_MS_MAX));
  await primary.kill();
  await primary.start();
  await Bun.sleep(random.below(BROKEN_MS_MAX));
  const isLost = random.chance(0.5);
  if (isLost) await primary.kill();
  await replica.start();
  await (isLost ? failOver(parts) : primary.replicated());
}

/** The replica of a primary that was killed takes its place. */
async function failOver(parts: Parts): Promise<void> {
  const { primary, replica } = parts;
  const proxies = [...parts.proxies, parts.commands];
  for (const proxy of proxies) proxy.drop();
  await replica.promote();
  for (const proxy of proxies) {
    proxy.moveTo(replica.port);
    proxy.pass();
  }
  parts.primary = replica;
  parts.replica = await replica.addSynchronousReplica();
  await primary.close();
}
