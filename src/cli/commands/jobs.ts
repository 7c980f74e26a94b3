import { Argument, type Command } from "commander";
import { type CommonFlags, examples, group, showingProgress, withCommonFlags } from "../command.ts";
import { orFail } from "../failure.ts";
import { given } from "../input.ts";
import { type CommandLineTools, JOBS_BY_HAND, type JobByHand } from "../tools.ts";

/** What each job does, as the help lists it. */
const WHAT_IT_DOES: Readonly<Record<JobByHand, string>> = {
  deadlines: "expire warrants whose deadline has passed",
  agents: "finish freezing and unfreezing the warrants of agents that were killed or made active",
  recover: "undo checks that were interrupted, so that their warrants are held again",
  retention: "delete what is no longer kept: old Idempotency-Keys, sign-ins, links and deliveries",
  reminders: "print on stderr the escalations that have waited for a day",
  webhooks: "attempt the deliveries that are due",
  anchor: "append new trace entries to the log, and sign a checkpoint of it",
};

export function addJobs(program: Command, tools: CommandLineTools): void {
  const jobs = group(program, "jobs", "run by hand what the server does by itself");
  const run = jobs
    .command("run")
    .addArgument(new Argument("<job>", "the job's name").choices(JOBS_BY_HAND))
    .summary("run a job once")
    .description("Runs a job once. The server may be running.")
    .addHelpText(
      "after",
      ["", "Jobs:", ...JOBS_BY_HAND.map((job) => `  ${job.padEnd(10)} ${WHAT_IT_DOES[job]}`)].join("\n"),
    );
  examples(run, "holdfast jobs run deadlines --data ./data");
  withCommonFlags(run).action(async (job: JobByHand) => {
    const { data, json } = run.opts<CommonFlags>();
    const ran = await showingProgress(tools, { step: `running the job ${job}`, json }, async () =>
      orFail(await tools.runJob({ job, ...given({ data }) })),
    );
    const done = ran.done === null ? "" : ` ${ran.done} done.`;
    tools.print(json ? JSON.stringify(ran) : `The job ${job} ran.${done}`);
  });
}
