import { type FaultyProxy, startFaultyProxy } from "../postgres/proxy.ts";
import { postgresSettings } from "../postgres/settings.ts";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import { until } from "../support/until.ts";
import { createFront, type Front } from "./front.ts";
import { createProgram, type Program, type Server } from "./program.ts";
import type { Random } from "./random.ts";

/** Instances of Holdfast on one ledger in PostgreSQL, with a synchronous replica, and what can go wrong between them. */

const INSTANCES = 3;
const READY_MS = 60_000;
/** How long a connection to the database is broken at most, and how late it may be. */
const BROKEN_MS_MAX = 2_500;
const LATE_MS_MAX = 60;

/** What happens to them, by its name in the tally. */
const FAULTS = {
  "instances killed": killSome,
  "kills of the database": killDatabase,
  "connections to the database dropped": (cluster: Parts) => breakFor(cluster, ({ proxy }) => proxy.drop()),
  "questions to the database halved": (cluster: Parts) =>
    breakFor(cluster, ({ proxy }) => proxy.halve("to server")),
  "answers of the database halved": (cluster: Parts) =>
    breakFor(cluster, ({ proxy }) => proxy.halve("to client")),
  "black holes before the database": (cluster: Parts) =>
    breakFor(cluster, ({ proxy }) => proxy.hold("to server")),
  "black holes behind the database": (cluster: Parts) =>
    breakFor(cluster, ({ proxy }) => proxy.hold("to client")),
  "slow databases": (cluster: Parts) =>
    breakFor(cluster, ({ proxy, random }) => proxy.delay(1 + random.below(LATE_MS_MAX))),
  "primaries lost for good": failOver,
} as const;
export type Fault = keyof typeof FAULTS;
export const FAULT_NAMES = Object.keys(FAULTS) as Fault[];

type Parts = {
  readonly random: Random;
  readonly proxy: FaultyProxy;
  readonly running: (Server | null)[];
  primary: Postgres;
  replica: Postgres;
};

export type Cluster = {
  readonly program: Program;
  readonly front: Front;
  /** The address of the database, past the proxy. */
  databaseUrl(): string;
  /** Starts the instances that do not run, and waits until all of them are ready. */
  start(): Promise<void>;
  fail(fault: Fault): Promise<void>;
  stop(): Promise<void>;
};

export async function createCluster(
  executable: readonly string[],
  folder: string,
  settings: Readonly<Record<string, string>>,
  random: Random,
): Promise<Cluster> {
  const primary = await startPostgres();
  const replica = await primary.addSynchronousReplica();
  const proxy = await startFaultyProxy(primary.port);
  const front = await createFront();
  const program = createProgram(executable, folder, {
    ...settings,
    ...postgresSettings(primary.url().replace(`:${primary.port}/`, `:${proxy.port}/`)),
    HOLDFAST_BASE_URL: front.url,
  });
  const running: (Server | null)[] = Array.from({ length: INSTANCES }, () => null);
  const parts: Parts = { random, proxy, running, primary, replica };
  return {
    program,
    front,
    databaseUrl: () => parts.primary.url(),
    async start() {
      for (const [at, server] of running.entries()) running[at] = server ?? (await program.serve());
      const urls = running.flatMap((server) => (server ? [server.url] : []));
      front.lead(urls.map((url) => Number(new URL(url).port)));
      await until(
        "all instances are ready",
        async () => {
          const answers = await Promise.all(urls.map((url) => fetch(`${url}/readyz`).catch(() => null)));
          return answers.every((answer) => answer?.status === 200);
        },
        READY_MS,
      );
    },
    async fail(fault) {
      await FAULTS[fault](parts);
    },
    async stop() {
      await program.killAll();
      front.close();
      proxy.close();
      await parts.replica.close();
      await parts.primary.close();
    },
  };
}

async function killSome({ random, running }: Parts): Promise<void> {
  const count = 1 + random.below(running.length);
  for (let killed = 0; killed < count; killed++) {
    const at = random.below(running.length);
    await running[at]?.kill();
    running[at] = null;
  }
}

/** The replica stays: without it the database commits nothing. */
async function killDatabase({ primary, random }: Parts): Promise<void> {
  await primary.kill();
  await Bun.sleep(random.below(BROKEN_MS_MAX));
  await primary.start();
}

async function breakFor(parts: Parts, breaks: (parts: Parts) => void): Promise<void> {
  breaks(parts);
  await Bun.sleep(parts.random.below(BROKEN_MS_MAX));
  parts.proxy.pass();
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
