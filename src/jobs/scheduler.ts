import type { JobState } from "../core/operation.ts";
import { MINUTE_MS } from "../core/time.ts";
import type { Context } from "../services/context.ts";
import { LeaseLost, underLease } from "./under-lease.ts";

/** A job may be run at any time, any number of times. One run does a limited amount of work. */
export type Job = JobTimes & (SharedJob | OwnJob);

type JobTimes = {
  readonly name: string;
  readonly everyMs: number;
  /** When the first run begins (default: after one interval). */
  readonly firstMs?: number;
  /** How long it may go without a run that succeeds before it counts as stuck (default: five minutes and three intervals). */
  readonly patienceMs?: number;
  /** Whether it decides by the clock what cannot be undone: it waits while the clock is wrong. */
  readonly needsTheClock?: boolean;
};

/** Of all instances that serve the ledger one does it at a time, while it has the lease of the job's name. */
export type SharedJob = {
  readonly doneBy: "one";
  /**
   * Begins the job anew, with each new lease: what it remembered of an earlier one is outdated, since another instance has worked
   * meanwhile.
   *
   * @param ctx fails once the lease is lost
   */
  readonly begin: (ctx: Context) => Run;
};

/** Each instance does it, since it is about what only that process knows, or belongs to it alone. */
export type OwnJob = { readonly doneBy: "each"; readonly run: Run };

/** @param at the context, whose clock may stand still while the run goes on */
export type Run = (at: Context) => Promise<unknown>;

export type Scheduler = {
  /** Runs a job now, or waits for the run that is under way. Never rejects. */
  run(name: string): Promise<void>;
  states(): readonly JobState[];
  /** Starts no more runs, and resolves when the running ones have ended. */
  stop(): Promise<void>;
};

type Options = {
  readonly ctx: Context;
  readonly onFault: (job: string, error: unknown) => void;
  /** Epoch milliseconds. */
  readonly now: () => number;
};

/** Runs each job at its interval. A job never overlaps itself: a run that takes longer delays its own next one. */
export function startScheduler(jobs: readonly Job[], options: Options): Scheduler {
  const scheduled = new Map(jobs.map((job) => [job.name, scheduledJob(job, options)]));
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

/** How a run is made now; null where another instance does the job, or nobody knows. */
type Turn = () => (() => Promise<unknown>) | null;

function turnsOf(job: Job, ctx: Context): Turn {
  if (job.doneBy === "each") return () => () => job.run(ctx);
  const lease = ctx.instances.lease(job.name);
  let begun: { readonly token: number; readonly run: () => Promise<unknown> } | null = null;
  function turn() {
    const token = lease.token();
    if (token === null) return null;
    if (begun?.token !== token) {
      const at = underLease(ctx, () => lease.token() === token);
      const run = (job as SharedJob).begin(at);
      begun = { token, run: () => run(at) };
    }
    return begun.run;
  }
  // Some jobs count from their beginning.
  turn();
  return turn;
}

function scheduledJob(job: Job, { ctx, onFault, now }: Options) {
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
  const turn = turnsOf(job, ctx);

  async function runOnce(): Promise<void> {
    const startedAt = performance.now();
    dueAt = startedAt + everyMs;
    const run = turn();
    if (run === null) {
      succeededAt = startedAt;
      return;
    }
    known.lastStartedAt = now();
    try {
      await run();
      succeededAt = performance.now();
      known.lastOutcome = "succeeded";
    } catch (error) {
      if (!(error instanceof LeaseLost)) {
        known.failures += 1;
        known.lastOutcome = "failed";
        onFault(name, error);
      }
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
