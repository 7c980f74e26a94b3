import { Argument, type Command } from "commander";
import { MACHINE } from "../../services/admin/authority.ts";
import { setKillSwitch } from "../../services/admin/switches.ts";
import { examples, runsOnLedger } from "../command.ts";
import { report } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";
import { organisationFields } from "./organisations.ts";

export function addKillSwitch(program: Command, tools: CommandLineTools): void {
  const command = program
    .command("kill-switch")
    .summary("stop new warrants, or let them open again")
    .description(
      "While the kill switch is on, the organisation opens no warrant, in either mode. Warrants that are open go on: they are verified, settled, and expire.",
    )
    .addArgument(new Argument("<state>", "on stops new warrants").choices(["on", "off"]))
    .requiredOption("--organisation <id>", "whose switch it is");
  examples(command, "holdfast kill-switch on --organisation org_…");
  runsOnLedger(command, tools, {
    input: (flags: { organisation: string }, [state]) => ({
      organisation_id: flags.organisation,
      on: state === "on",
    }),
    verb: (ctx, input) => setKillSwitch(ctx, MACHINE, input),
    print: (organisation) =>
      report(
        organisation.kill_switch
          ? `${organisation.name} opens no new warrants; those that are open go on.`
          : `${organisation.name} opens warrants.`,
        organisationFields(organisation),
      ),
  });
}
