import { Argument, type Command } from "commander";
import { MACHINE } from "../../services/admin/authority.ts";
import { setSecondFactor } from "../../services/admin/switches.ts";
import { examples, runsOnLedger } from "../command.ts";
import { report } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";
import { organisationFields } from "./organisations.ts";

export function addSecondFactor(program: Command, tools: CommandLineTools): void {
  const command = program
    .command("second-factor")
    .summary("ask people who may do more than read for a passkey")
    .description(
      "While it is on, operators, admins and owners prove a passkey before anything else, also in sign-ins that there are. Who has no passkey yet can only register one, at /account. API keys and viewers are not asked.",
    )
    .addArgument(new Argument("<state>", "on asks for a passkey").choices(["on", "off"]))
    .requiredOption("--organisation <id>", "whose people are asked");
  examples(command, "holdfast second-factor on --organisation org_…");
  runsOnLedger(command, tools, {
    input: (flags: { organisation: string }, [state]) => ({
      organisation_id: flags.organisation,
      on: state === "on",
    }),
    verb: (ctx, input) => setSecondFactor(ctx, MACHINE, input),
    print: (organisation) =>
      report(
        organisation.second_factor
          ? `${organisation.name} asks operators, admins and owners for a passkey. Who has none yet registers one at /account.`
          : `${organisation.name} lets people in by the password alone.`,
        organisationFields(organisation),
      ),
  });
}
