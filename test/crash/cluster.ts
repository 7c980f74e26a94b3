import { type FaultyProxy, startFaultyProxy } from "../support/faulty-proxy.ts";
import { startPostgres } from "../support/postgres-server.ts";
import { postgresSettings } from "../support/postgres-settings.ts";
import { until } from "../support/until.ts";
import { type Fault, killOne, type Parts } from "./faults.ts";
import { createFront, type Front } from "./front.ts";
import { createProgram, type Program, type Server } from "./program.ts";
import type { Random } from "./random.ts";

/** Instances of Holdfast on one ledger in PostgreSQL, with a synchronous replica. */

const INSTANCES = 3;
const READY_MS = 60_000;
/** When an instance is killed at the latest that has begun to start. */
const STARTING_MS_MAX = 800;

/** What an instance says of itself. One that says nothing must not be waited for without end. */
async function asked(server: string, path: string): Promise<{ readonly ok: boolean; readonly text: string }> {
  const url = `${server}/${path}`;
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(READY_MS / 2) });
    return { ok: answer.ok, text: `${url} ${answer.status} ${await answer.text()}` };
  } catch (error) {
    return { ok: false, text: `${url} ${error}` };
  }
}

type Settings = Readonly<Record<string, string>>;

export type Cluster = {
  readonly program: Program;
  readonly front: Front;
  /** The address of the database, past the proxies. */
  databaseUrl(): string;
  /** Starts the instances that do not run, and waits until all of them are ready. */
  start(): Promise<void>;
  fail(fault: Fault): Promise<void>;
  killOne(): Promise<void>;
  killAll(): Promise<void>;
  stop(): Promise<void>;
};

/** @param further settings that are known only once the ledger is there, such as those of who looks at its log */
export async function createCluster(
  executable: readonly string[],
  folder: string,
  settings: Settings,
  random: Random,
  further: (ledger: Program) => Promise<Settings>,
): Promise<Cluster> {
  const primary = await startPostgres();
  const replica = await primary.addSynchronousReplica();
  const commands = await startFaultyProxy(primary.port);
  const proxies = await Promise.all(Array.from({ length: INSTANCES }, () => startFaultyProxy(primary.port)));
  const through = (proxy: FaultyProxy) => primary.url().replace(`:${primary.port}/`, `:${proxy.port}/`);
  const front = await createFront();
  const own = {
    ...settings,
    ...postgresSettings(through(commands)),
    HOLDFAST_BASE_URL: `http://localhost:${new URL(front.url).port}`,
  };
  const program = createProgram(executable, folder, {
    ...own,
    ...(await further(createProgram(executable, folder, own))),
  });
  const running: (Server | null)[] = Array.from({ length: INSTANCES }, () => null);
  const leadTo = (servers: readonly (Server | null)[]): void =>
    front.lead(servers.flatMap((server) => (server ? [Number(new URL(server.url).port)] : [])));
  const parts: Parts = {
    ...{ random, proxies, commands, running, primary, replica },
    cutStartShort: () => program.serveCutShort(random.below(STARTING_MS_MAX)),
    avoid: (server) => leadTo(running.filter((one) => one !== server)),
  };
  return {
    program,
    front,
    databaseUrl: () => parts.primary.url(),
    async start() {
      for (const [at, proxy] of proxies.entries())
        running[at] ??= await program.serve({ HOLDFAST_DATABASE: through(proxy) });
      leadTo(running);
      const urls = running.map((server) => `${server?.url}`);
      await until(
        "all instances are ready",
        async () => (await Promise.all(urls.map((url) => asked(url, "readyz")))).every(({ ok }) => ok),
        READY_MS,
      ).catch(async (error: Error) => {
        const said = urls.flatMap((url) => ["healthz", "readyz"].map((path) => asked(url, path)));
        error.message += `:\n${(await Promise.all(said)).map(({ text }) => text).join("\n")}`;
        throw error;
      });
    },
    fail: ({ happens }) => happens(parts),
    killOne: () => killOne(parts),
    async killAll() {
      await Promise.all(running.map((server) => server?.kill()));
      running.fill(null);
    },
    async stop() {
      await program.killAll();
      front.close();
      for (const proxy of [commands, ...proxies]) proxy.close();
      await parts.replica.close();
      await parts.primary.close();
    },
  };
}
