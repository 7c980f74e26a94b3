import type { Command } from "commander";
import { type CommonFlags, examples } from "../command.ts";
import { CommandFailure } from "../failure.ts";
import { given } from "../input.ts";
import type { CommandLineTools } from "../tools.ts";

export function addDemo(program: Command, tools: CommandLineTools): void {
  const demo = program
    .command("demo")
    .summary("watch money being held, checked and settled, in a sandbox")
    .description(
      "Makes a sandbox organisation in a new folder, and a local seller that delivers well and badly. Opens a warrant for each deliverable, prints what happened to the money and why, and keeps serving until Ctrl-C.",
    )
    .option("--data <folder>", "a new or empty folder, or an earlier demo's (default: a temporary one)")
    .option("--json", "print exactly one JSON object, once the story is over")
    .option("--exit", "stop after the story (default: keep serving)");
  examples(demo, "holdfast demo", "holdfast demo --exit --json");
  demo.action(async () => {
    const { data, json = false, exit = false } = demo.opts<CommonFlags & { exit?: boolean }>();
    const refused = await tools.demo({ exit, json, ...given({ data }) });
    if (refused) throw new CommandFailure(refused);
  });
}
