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
/** How often a connection is broken for so long. */
const LONG_CHANCE = 0.2;

/** What a fault happens to. */
export type Parts = {
  readonly random: Random;
  readonly proxy: FaultyProxy;
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

const broken =
  (breaks: (parts: Parts) => void, longChance = 0): Happens =>
  async (parts) => {
    const { proxy, random } = parts;
    breaks(parts);
    await Bun.sleep(random.chance(longChance) ? LONG_MS : random.below(BROKEN_MS_MAX));
    proxy.pass();
  };

/** The faults of each family, by their names in the tally. */
const FAULTS = {
  instance: { "instances killed": killSome, "instances stopped for too long": stopOne },
  database: { "kills of the database": killDatabase },
  connection: {
    "connections to the database dropped": broken(({ proxy }) => proxy.drop()),
    "questions to the database halved": broken(({ proxy }) => proxy.halve("to server")),
    "answers of the database halved": broken(({ proxy }) => proxy.halve("to client")),
    "black holes before the database": broken(({ proxy }) => proxy.hold("to server"), LONG_CHANCE),
    "black holes behind the database": broken(({ proxy }) => proxy.hold("to client"), LONG_CHANCE),
    "slow databases": broken(({ proxy, random }) => proxy.delay(1 + random.below(LATE_MS_MAX))),
  },
  failover: { "primaries lost for good": failOver },
} as const satisfies Readonly<Record<string, Readonly<Record<string, Happens>>>>;

type Family = keyof typeof FAULTS;
export type Fault = { readonly name: string; readonly family: Family; readonly happens: Happens };

/** The families of each five rounds, in any order. */
const FIVE_ROUNDS: readonly Family[] = ["instance", "database", "connection", "connection", "failover"];

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
async function failOver(parts: Parts): Promise<void> {
  const { primary, replica, proxy } = parts;
  await primary.kill();
  proxy.drop();
  await replica.promote();
  proxy.moveTo(replica.port);
  proxy.pass();
  parts.primary = replica;
  parts.replica = await replica.addSynchronousReplica();
  await primary.close();
}
