import type { Job } from "../../src/jobs/scheduler.ts";
import type { Context } from "../../src/services/context.ts";

/** Jobs that a test runs by hand, each begun once, as with a lease that is never lost. */
export const begunJobs = (jobs: readonly Job[], ctx: Context) =>
  jobs.map((job) => {
    const run = job.doneBy === "one" ? job.begin(ctx) : job.run;
    return { name: job.name, run: () => run(ctx) };
  });
