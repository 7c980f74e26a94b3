import { join } from "node:path";
import { Worker } from "node:worker_threads";
import type { Progress } from "../core/progress.ts";

/**
 * Progress on a terminal, drawn by a thread of its own. Most long work here is one call of SQLite, which holds up the main
 * thread and all its timers. The libraries for progress that were looked at (ora, nanospinner, cli-progress) draw from a timer on
 * the main thread, so they would show nothing.
 */

/** What the terminal on stderr is like. */
export type Terminal = {
  readonly columns: number;
  /** Whether it can clear a line. A terminal that cannot gets a few whole lines instead. */
  readonly clearsLines: boolean;
};

/** The memory that both threads share. */
export type Shared = {
  /** One of the `PHASE`s below. */
  readonly phase: Int32Array<SharedArrayBuffer>;
  /** How much is done, then the total; NaN where it is not known. */
  readonly figures: Float64Array<SharedArrayBuffer>;
};

export type WorkerInput = {
  readonly step: string;
  readonly terminal: Terminal;
  readonly shared: Shared;
  /** The time of the start, in milliseconds, by a clock that both threads share: see `monotonicMs`. */
  readonly startedAt: number;
};

/** A clock that is the same in every thread of the process and never jumps. */
export const monotonicMs = (): number => performance.timeOrigin + performance.now();

/**
 * The phases of a step. It begins QUIET; from there it becomes SHOWN, or STOPPED if it ends before anything
 * is shown.
 */
export const PHASE = { QUIET: 0, SHOWN: 1, STOPPED: 2 } as const;

/** In the executable the worker is a second entry point of the build, under its path below src. */
const WORKER = import.meta.dir.startsWith("/$bunfs/")
  ? "/$bunfs/root/cli/progress-worker.ts"
  : join(import.meta.dir, "progress-worker.ts");

/** Shows on stderr, after two seconds, which step runs, for how long, and how far it has come. */
export function startProgress(step: string, terminal: Terminal): Progress {
  const shared: Shared = {
    phase: new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)),
    figures: new Float64Array(new SharedArrayBuffer(2 * Float64Array.BYTES_PER_ELEMENT)).fill(Number.NaN),
  };
  const worker = new Worker(WORKER, {
    workerData: { step, terminal, shared, startedAt: monotonicMs() } satisfies WorkerInput,
  });
  const cleared = new Promise<void>((resolve) => {
    worker.once("message", () => resolve());
    // Where the thread cannot run, the work goes on and nothing is shown.
    worker.once("error", () => resolve());
    worker.once("exit", () => resolve());
  });
  let stopped: Promise<void> | null = null;
  async function end(): Promise<void> {
    const { QUIET, SHOWN, STOPPED } = PHASE;
    if (Atomics.compareExchange(shared.phase, 0, QUIET, STOPPED) === SHOWN) {
      worker.postMessage("clear");
      await cleared;
    }
    void worker.terminate();
  }
  return {
    update(done, total) {
      shared.figures[0] = done;
      shared.figures[1] = total ?? Number.NaN;
    },
    stop() {
      stopped ??= end();
      return stopped;
    },
  };
}
