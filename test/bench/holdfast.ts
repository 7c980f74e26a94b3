import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** The executable, and servers of it. */
export const BINARY = resolve(import.meta.dir, "../../dist/holdfast");
export const METRICS_TOKEN = "the-bench-reads-the-metrics-with-this";

export type Running = AsyncDisposable & { readonly url: string; readonly pid: number };
export type RunningServer = Running & {
  /** What it has logged. */
  readonly log: () => string;
  /** Null while it runs. */
  readonly exitCode: () => number | null;
};

const settingsOf = (data: string): Record<string, string> => ({
  HOLDFAST_DATA: data,
  HOLDFAST_PORT: "0",
  HOLDFAST_ALLOW_NETWORKS: "127.0.0.0/8",
  HOLDFAST_RATE_READ: "100000000",
  HOLDFAST_RATE_WRITE: "100000000",
  HOLDFAST_METRICS_TOKEN: METRICS_TOKEN,
});

export type Environment = {
  /** The hard limit of its file descriptors; this process's own by default. */
  readonly descriptors?: number;
  readonly settings?: Readonly<Record<string, string>>;
};

/** `holdfast serve` on a data folder, at a port of its choice. Disposing of it ends it and copies its log. */
export async function startServer(
  data: string,
  { descriptors, settings = {} }: Environment = {},
): Promise<RunningServer> {
  const logFile = `${data}.log`;
  const limited = descriptors === undefined ? [] : ["sh", "-c", `ulimit -n ${descriptors} && exec "$0" "$@"`];
  const child = Bun.spawn([...limited, BINARY, "serve", "--json"], {
    env: { ...settingsOf(data), ...settings },
    stdin: "ignore",
    stdout: "pipe",
    stderr: Bun.file(logFile),
  });
  children.add(child);
  const { value } = await child.stdout.getReader().read();
  if (!value) throw new Error(`the server did not start: ${readFileSync(logFile, "utf8")}`);
  const { url } = JSON.parse(new TextDecoder().decode(value)) as { readonly url: string };
  const logged = () => readFileSync(logFile, "utf8");
  return {
    url,
    pid: child.pid,
    log: logged,
    exitCode: () => child.exitCode,
    [Symbol.asyncDispose]: () => ended(child),
  };
}

/** A program of this folder that listens at the port which is its first argument. */
export async function startBeside(file: string, port: number, ...rest: readonly string[]): Promise<Running> {
  const child = Bun.spawn([process.execPath, file, String(port), ...rest], {
    stdout: "ignore",
    stderr: "inherit",
  });
  children.add(child);
  const url = `http://127.0.0.1:${port}`;
  const running = { url, pid: child.pid, [Symbol.asyncDispose]: () => ended(child) };
  for (let attempt = 0; attempt < 200; attempt++) {
    if (await fetch(url).catch(() => null)) return running;
    await Bun.sleep(50);
  }
  await ended(child);
  throw new Error(`nothing listens at ${url}`);
}

/** The started processes. They are ended together with the bench. */
const children = new Set<Bun.Subprocess>();
process.once("exit", () => {
  for (const child of children) child.kill();
});

async function ended(child: Bun.Subprocess): Promise<void> {
  child.kill();
  await child.exited;
  children.delete(child);
}

type Cost = { readonly seconds: number; readonly megabytes: number };

/** How long a command of the operator takes, and how much memory. */
export async function costOf(data: string, ...command: readonly string[]): Promise<Cost> {
  const startedAt = performance.now();
  const options = { env: settingsOf(data), stdout: "ignore", stderr: "inherit" } as const;
  const child = Bun.spawn([BINARY, ...command, "--json"], options);
  if ((await child.exited) !== 0) throw new Error(`holdfast ${command.join(" ")} failed`);
  const megabytes = Math.round((child.resourceUsage()?.maxRSS ?? 0) / 1_048_576);
  return { seconds: (performance.now() - startedAt) / 1_000, megabytes };
}

/** Runs a command on a data folder, and answers what it prints. Throws where it fails. */
export function runCommand(data: string, ...command: readonly string[]) {
  return runWith(settingsOf(data), command);
}

function runWith(env: Readonly<Record<string, string>>, command: readonly string[]) {
  const { stdout, stderr, success } = Bun.spawnSync([BINARY, ...command, "--json"], { env });
  if (!success) throw new Error(`holdfast ${command.join(" ")}: ${stderr.toString()}`);
  return JSON.parse(stdout.toString());
}

/**
 * Makes a ledger with an organisation, an agent, and more money than any load holds. Answers the secret of the agent's key.
 *
 * @param settings where it is, if not in the data folder
 */
export function prepareLedger(data: string, settings: Readonly<Record<string, string>> = {}): string {
  const run = (...command: readonly string[]) => runWith({ ...settingsOf(data), ...settings }, command);
  const owner = ["--owner-email", "bench@example.com", "--owner-password", "correct horse battery"];
  const { organisation } = run("organisations", "create", "--name", "Bench", ...owner);
  const account = ["--organisation", organisation.id, "--mode", "sandbox"];
  const agent = run("agents", "create", ...account, "--name", "load");
  run("balances", "fund", ...account, "--amount", "1000000000000000");
  return run("keys", "create", "--agent", agent.id).secret;
}

/** Resident memory in MB. */
export function memoryOf({ pid }: Running): number {
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Math.round(Number(kilobytes ?? 0) / 1_024);
}

export const ledgerFileOf = (data: string): string => join(data, "holdfast.db");
