/** A job is a plain function that may be called at any time, and again. */
export type Job = { readonly name: string; readonly everyMs: number; readonly run: () => Promise<unknown> };

export type Scheduler = {
  /** Starts nothing more, and resolves when what is running is done. */
  stop(): Promise<void>;
};

/** Runs each job at its interval. A job never overlaps itself: a run that takes longer delays its own next one. */
export function startScheduler(
  jobs: readonly Job[],
  onFault: (job: string, error: unknown) => void,
): Scheduler {
  const running = new Map<string, Promise<unknown>>();
  const timers = jobs.map((job) =>
    setInterval(() => {
      if (running.has(job.name)) return;
      const run = job
        .run()
        .catch((error: unknown) => onFault(job.name, error))
        .finally(() => running.delete(job.name));
      running.set(job.name, run);
    }, job.everyMs),
  );
  return {
    async stop() {
      for (const timer of timers) clearInterval(timer);
      await Promise.all(running.values());
    },
  };
}
