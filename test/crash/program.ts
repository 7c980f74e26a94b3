import { existsSync, openSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join, resolve } from "node:path";

/** Holdfast as a process: the compiled binary, or the source under Bun. */

const ROOT = resolve(import.meta.dir, "../..");
export const BINARY = [join(ROOT, "dist/holdfast")];
export const SOURCE = [process.execPath, join(ROOT, "src/main.ts")];

const READY_MS = 30_000;
const COMMAND_MS = 60_000;

export type Json = ReturnType<typeof JSON.parse>;

export type Server = {
  readonly url: string;
  /** Sends SIGKILL, and resolves when the process has ended. */
  kill(): Promise<void>;
  /** Sends SIGTERM, and resolves with the exit code. */
  stop(): Promise<number | null>;
};

/** A data folder, and the programs that run on it. */
export type Program = {
  /** Runs a command with `--json`: the one object that it prints. Throws where it fails. */
  command(...args: readonly string[]): Promise<Json>;
  /** Starts the server, and waits until it listens. */
  serve(): Promise<Server>;
  /** Starts the server, and kills it after a time, even if it has not finished starting. */
  serveCutShort(afterMs: number): Promise<void>;
  /** Faults that the servers have logged. */
  faults(): readonly string[];
  /** Processes that still run in the folder, where the system shows them (Linux). */
  processes(): readonly number[];
  killAll(): Promise<void>;
};

/** @param settings environment variables beside those of every test */
export function createProgram(
  executable: readonly string[],
  folder: string,
  settings: Readonly<Record<string, string>> = {},
): Program {
  const log = join(folder, "server.log");
  const logFile = openSync(log, "a");
  const running = new Set<Bun.Subprocess>();
  const env = {
    HOLDFAST_DATA: "data",
    HOLDFAST_PORT: "0",
    HOLDFAST_ALLOW_NETWORKS: "127.0.0.0/8",
    HOLDFAST_FETCH_SECONDS: "3",
    HOLDFAST_RATE_READ: "100000000",
    HOLDFAST_RATE_WRITE: "100000000",
    ...settings,
  };

  const start = () => {
    const child = Bun.spawn([...executable, "serve", "--json"], {
      cwd: folder,
      env,
      stdin: "ignore",
      stdout: "pipe",
      stderr: logFile,
    });
    running.add(child);
    const ended = async (signal: "SIGKILL" | "SIGTERM") => {
      child.kill(signal);
      await child.exited;
      running.delete(child);
      return child.signalCode === null ? child.exitCode : null;
    };
    return { child, ended };
  };

  const processes = (): number[] =>
    (existsSync("/proc") ? readdirSync("/proc") : [])
      .filter((name) => /^\d+$/.test(name) && worksIn(name, folder))
      .map(Number);

  return {
    async command(...args) {
      const child = Bun.spawn([...executable, ...args, "--json"], {
        cwd: folder,
        env,
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
        timeout: COMMAND_MS,
      });
      const [out, err] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
        child.exited,
      ]);
      if (child.exitCode !== 0) throw new Error(`holdfast ${args.join(" ")}: ${err || out}`);
      return JSON.parse(out);
    },
    async serve() {
      const { child, ended } = start();
      const late = setTimeout(() => child.kill("SIGKILL"), READY_MS);
      const line = await firstLine(child.stdout);
      clearTimeout(late);
      if (line === null) throw new Error(`the server ended before it listened; see ${log}`);
      return {
        url: JSON.parse(line).url,
        kill: async () => void (await ended("SIGKILL")),
        stop: () => ended("SIGTERM"),
      };
    },
    async serveCutShort(afterMs) {
      const { ended } = start();
      await Bun.sleep(afterMs);
      await ended("SIGKILL");
    },
    faults: () =>
      readFileSync(log, "utf8")
        .split("\n")
        .filter((line) => line !== "" && !/"level":"(info|warning)"/.test(line)),
    processes,
    async killAll() {
      for (const child of running) child.kill("SIGKILL");
      await Promise.all([...running].map(({ exited }) => exited));
      running.clear();
    },
  };
}

/** Whether a process has the folder as its working directory; false for one that has just ended. */
function worksIn(pid: string, folder: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === folder;
  } catch {
    return false;
  }
}

async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string | null> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true });
    if (text.includes("\n")) return text.slice(0, text.indexOf("\n"));
  }
  return null;
}
