import { Argument, type Command } from "commander";
import { type CommonFlags, examples, group, withCommonFlags } from "../command.ts";
import { orFail } from "../failure.ts";
import { given } from "../input.ts";
import { type CommandLineTools, JOBS_BY_HAND, type JobByHand } from "../tools.ts";

export function addJobs(program: Command, tools: CommandLineTools): void {
  const jobs = group(program, "jobs", "run by hand what the server does by itself");
  const run = jobs
    .command("run")
    .addArgument(new Argument("<job>", "which one").choices(JOBS_BY_HAND))
    .summary("run one of them once")
    .description(
      "Runs a job once: deadlines (expire what is overdue), agents (finish freezing and thawing), recover (undo checks that were cut off), retention (forget what is old), reminders (name the escalations that have waited for a day, on stderr), webhooks (attempt the deliveries that are due). The server may be running.",
    );
  examples(run, "holdfast jobs run deadlines --data ./data");
  withCommonFlags(run).action(async (job: JobByHand) => {
    const { data, json } = run.opts<CommonFlags>();
    const ran = orFail(await tools.runJob({ job, ...given({ data }) }));
    const done = ran.done === null ? "" : ` ${ran.done} done.`;
    tools.print(json ? JSON.stringify(ran) : `The job ${job} ran.${done}`);
  });
}
