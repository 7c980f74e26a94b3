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
  /** SIGSTOP: it stands still until it goes on. */
  pause(): void;
  goOn(): void;
  /** Sends SIGTERM, and resolves with the exit code. */
  stop(): Promise<number | null>;
  /** Resolves with the exit code once it has ended by itself. */
  ended(): Promise<number | null>;
};

/** What a command has printed: the one object, or the code of its refusal. Null where it was cut off. */
export type Attempt =
  | { readonly refused: null; readonly shown: Json }
  | { readonly refused: string; readonly shown: null }
  | null;

/** A data folder, and the programs that run on it. */
export type Program = {
  /** Runs a command with `--json`: the one object that it prints. Throws where it fails. */
  command(...args: readonly string[]): Promise<Json>;
  /** Runs a command that may be refused, and is killed at once when the signal says so. */
  attempt(args: readonly string[], cut: AbortSignal): Promise<Attempt>;
  /** Starts the server, and waits until it listens. It may have settings of its own. */
  serve(own?: Readonly<Record<string, string>>): Promise<Server>;
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

  const start = (own: Readonly<Record<string, string>> = {}) => {
    const child = Bun.spawn([...executable, "serve", "--json"], {
      cwd: folder,
      env: { ...env, ...own },
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
      const { out, exitCode, fault } = await run([...executable, ...args], { cwd: folder, env });
      if (exitCode !== 0) throw fault();
      return JSON.parse(out);
    },
    async attempt(args, cut) {
      const { out, err, exitCode, fault } = await run([...executable, ...args], { cwd: folder, env }, cut);
      // What it printed whole was done, even where it was killed as it ended.
      if (exitCode === 0) return { refused: null, shown: JSON.parse(out) };
      if (cut.aborted) return null;
      // It could not connect in time, on a busy machine: nothing was done.
      if (err.includes("HOLDFAST_DATABASE")) return null;
      if (exitCode !== 1) throw fault();
      return { refused: JSON.parse(err).error.code, shown: null };
    },
    async serve(own) {
      const { child, ended } = start(own);
      const late = setTimeout(() => child.kill("SIGKILL"), READY_MS);
      const line = await firstLine(child.stdout);
      clearTimeout(late);
      if (line === null) throw new Error(`the server ended before it listened; see ${log}`);
      return {
        url: JSON.parse(line).url,
        kill: async () => void (await ended("SIGKILL")),
        pause: () => child.kill("SIGSTOP"),
        goOn: () => child.kill("SIGCONT"),
        stop: () => ended("SIGTERM"),
        ended: () => child.exited.then(() => child.exitCode),
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

/** Runs a command to its end, or until the signal kills it. */
async function run(
  command: readonly string[],
  options: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
  cut?: AbortSignal,
) {
  const child = Bun.spawn([...command, "--json"], {
    ...{ ...options, stdin: "ignore", stdout: "pipe", stderr: "pipe", timeout: COMMAND_MS },
    ...(cut && { signal: cut, killSignal: "SIGKILL" }),
  });
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return {
    out,
    err,
    exitCode: child.exitCode,
    fault: () => new Error(`${command.join(" ")}: ${err || out}`),
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
