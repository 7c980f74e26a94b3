import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Json } from "./client.ts";
import { databaseSettings } from "./database-settings.ts";
import { removeLedgerFolder, takePlacesOfKilled } from "./new-ledger.ts";

/** The executable, in a folder of its own, as somebody who downloaded it runs it. */

const EXECUTABLE = resolve(import.meta.dir, "../../dist/holdfast");
/** The same from the source, for tests that CI also runs with `EXECUTABLE`. */
export const PROGRAM: readonly string[] = process.env.EXECUTABLE
  ? [process.env.EXECUTABLE]
  : [process.execPath, resolve(import.meta.dir, "../../src/main.ts")];
const COMMAND_MS = 60_000;
const READY_MS = 20_000;
const DRAIN_MS = 10_000;

export type Installation = {
  /** The ledger is in its `data`. */
  readonly folder: string;
  /** Runs a command to its end, and answers what it prints. Throws where it fails. */
  run(...args: readonly string[]): Promise<string>;
  /** The object that a command prints with `--json`. */
  json(...args: readonly string[]): Promise<Json>;
  serve(): Promise<RunningServer>;
  /** What its servers have logged. */
  logged(): string;
  /** The lines of it that are faults, or no log. */
  faults(): readonly string[];
  /** Kills the servers, and removes the folder. */
  remove(): Promise<void>;
};

export type RunningServer = {
  /** Where it listens, by the name that its links and cookies have. */
  readonly base: string;
  /** What it has printed so far. */
  printed(): string;
  /** Sends SIGTERM. Answers the exit code. */
  end(): Promise<number>;
  kill(): Promise<void>;
  /** Resolves with the exit code once it has ended by itself. */
  ended(): Promise<number>;
};

/**
 * @param settings the environment, without `HOLDFAST_`
 * @param authority the certificate of an authority that it trusts besides those of its machine, as PEM
 */
export function install(
  settings: Readonly<Record<string, string>>,
  authority: string | null = null,
  program: readonly string[] = [EXECUTABLE],
): Installation {
  if (program[0] === EXECUTABLE && !existsSync(EXECUTABLE))
    throw new Error("dist/holdfast is missing: run `bun run build` first");
  const root = mkdtempSync(join(tmpdir(), "holdfast-installed-"));
  const folder = join(root, "folder");
  mkdirSync(folder);
  const authorities = join(root, "authority.pem");
  if (authority !== null) writeFileSync(authorities, authority);
  const env = {
    ...databaseSettings(folder),
    ...Object.fromEntries(Object.entries(settings).map(([name, value]) => [`HOLDFAST_${name}`, value])),
    ...(authority !== null && { NODE_EXTRA_CA_CERTS: authorities }),
  };
  const servers: Bun.Subprocess[] = [];
  const logged = () => readFileSync(join(root, "log"), "utf8");
  const run: Installation["run"] = async (...args) => {
    const child = Bun.spawn([...program, ...args], {
      ...{ cwd: folder, env, stdin: "ignore", stdout: "pipe", stderr: "pipe", timeout: COMMAND_MS },
    });
    const [out, err] = await Promise.all(
      [child.stdout, child.stderr].map((from) => new Response(from).text()),
    );
    if ((await child.exited) !== 0) throw new Error(`holdfast ${args.join(" ")} failed: ${out}${err}`);
    return out ?? "";
  };
  return {
    folder,
    run,
    json: async (...args) => JSON.parse(await run(...args, "--json")),
    async serve() {
      const server = Bun.spawn([...program, "serve"], {
        ...{ cwd: folder, env, stdin: "ignore", stdout: "pipe", stderr: openSync(join(root, "log"), "a") },
      });
      servers.push(server);
      return ready(server, folder, logged);
    },
    logged,
    faults: () =>
      logged()
        .split("\n")
        .filter((line) => line !== "" && !/"level":"(info|warning)"/.test(line)),
    async remove() {
      for (const server of servers) server.kill("SIGKILL");
      await Promise.all(servers.map(({ exited }) => exited));
      removeLedgerFolder(folder);
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** Reads what a server prints until it says where it listens, and goes on reading. */
async function ready(
  server: Bun.Subprocess<"ignore", "pipe", number>,
  folder: string,
  logged: () => string,
): Promise<RunningServer> {
  let said = "";
  const listens = Promise.withResolvers<string>();
  void (async () => {
    for await (const chunk of server.stdout.pipeThrough(new TextDecoderStream())) {
      said += chunk;
      const port = /listens at http:\/\/[^\s/]+:(\d+)/.exec(said)?.[1];
      if (port !== undefined) listens.resolve(`http://localhost:${port}`);
    }
    listens.reject(new Error(`serve ended before it was ready, having said: ${said}${logged()}`));
  })();
  const late = setTimeout(() => server.kill("SIGKILL"), READY_MS);
  const base = await listens.promise;
  clearTimeout(late);
  return {
    base,
    printed: () => said,
    async end() {
      server.kill("SIGTERM");
      const tooLong = setTimeout(() => server.kill("SIGKILL"), DRAIN_MS);
      const code = await server.exited;
      clearTimeout(tooLong);
      return code;
    },
    async kill() {
      server.kill("SIGKILL");
      await server.exited;
      takePlacesOfKilled(folder);
    },
    ended: () => server.exited,
  };
}
