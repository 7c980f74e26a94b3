import type { JobState } from "../core/operation.ts";
import { MINUTE_MS } from "../core/time.ts";

/** A job is a function that may be called at any time, any number of times. One run does a limited amount of work. */
export type Job = {
  readonly name: string;
  readonly everyMs: number;
  /** When the first run begins (default: after one interval). */
  readonly firstMs?: number;
  /** How long it may go without a run that succeeds before it counts as stuck (default: five minutes and three intervals). */
  readonly patienceMs?: number;
  /** Whether it decides by the clock what cannot be undone: it waits while the clock is wrong. */
  readonly needsTheClock?: boolean;
  readonly run: () => Promise<unknown>;
};

export type Scheduler = {
  /** Runs a job now, or waits for the run that is under way. Never rejects. */
  run(name: string): Promise<void>;
  states(): readonly JobState[];
  /** Starts no more runs, and resolves when the running ones have ended. */
  stop(): Promise<void>;
};

type Options = {
  readonly onFault: (job: string, error: unknown) => void;
  /** Epoch milliseconds. */
  readonly now: () => number;
};

/** Runs each job at its interval. A job never overlaps itself: a run that takes longer delays its own next one. */
export function startScheduler(jobs: readonly Job[], { onFault, now }: Options): Scheduler {
  const scheduled = new Map(jobs.map((job) => [job.name, scheduledJob(job, onFault, now)]));
  const timers = jobs.flatMap(({ name, everyMs, firstMs }) => {
    const run = () => void scheduled.get(name)?.run();
    return [setInterval(run, everyMs), ...(firstMs === undefined ? [] : [setTimeout(run, firstMs)])];
  });
  return {
    async run(name) {
      const job = scheduled.get(name);
      if (!job) throw new Error(`there is no job ${name}`);
      await job.run();
    },
    states: () => [...scheduled.values()].map((job) => job.state()),
    async stop() {
      for (const timer of timers) clearTimeout(timer);
      await Promise.all([...scheduled.values()].map((job) => job.running()));
    },
  };
}

function scheduledJob(job: Job, onFault: Options["onFault"], now: () => number) {
  const { name, everyMs, firstMs = everyMs, patienceMs = 5 * MINUTE_MS + 3 * everyMs } = job;
  const known = {
    name,
    runs: 0,
    failures: 0,
    lastOutcome: null as JobState["lastOutcome"],
    lastStartedAt: null as number | null,
    lastEndedAt: null as number | null,
    lastDurationMs: null as number | null,
  };
  let running: Promise<void> | null = null;
  // Both times are of a clock that never jumps. Before the first run, both are when it is due.
  let dueAt = performance.now() + firstMs;
  let succeededAt = performance.now() + firstMs;
  const quietMs = () => Math.max(0, performance.now() - succeededAt);

  async function runOnce(): Promise<void> {
    const startedAt = performance.now();
    dueAt = startedAt + everyMs;
    known.lastStartedAt = now();
    try {
      await job.run();
      succeededAt = performance.now();
      known.lastOutcome = "succeeded";
    } catch (error) {
      known.failures += 1;
      known.lastOutcome = "failed";
      onFault(name, error);
    }
    known.runs += 1;
    known.lastEndedAt = now();
    known.lastDurationMs = performance.now() - startedAt;
  }

  return {
    run: () => {
      running ??= runOnce().finally(() => {
        running = null;
      });
      return running;
    },
    running: () => running,
    state: (): JobState => ({
      ...known,
      running: running !== null,
      lagMs: Math.max(0, performance.now() - dueAt),
      quietMs: quietMs(),
      stuck: quietMs() > patienceMs,
    }),
  };
}
