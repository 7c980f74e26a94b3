import { Argument, type Command } from "commander";
import { MACHINE } from "../../services/admin/authority.ts";
import { setMessagingDecisions } from "../../services/admin/switches.ts";
import { examples, runsOnLedger } from "../command.ts";
import { report } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";
import { organisationFields } from "./organisations.ts";

export function addMessagingDecisions(program: Command, tools: CommandLineTools): void {
  const command = program
    .command("messaging-decisions")
    .summary("let people decide escalations in their chats")
    .description(
      "While it is on, people release and refund escalations by buttons in the chat that they have linked, with the role that they have. Not while the second factor is on, and not from the passkey threshold on. It is off by default.",
    )
    .addArgument(new Argument("<state>", "on allows decisions in chats").choices(["on", "off"]))
    .requiredOption("--organisation <id>", "whose escalations they are");
  examples(command, "holdfast messaging-decisions on --organisation org_…");
  runsOnLedger(command, tools, {
    input: (flags: { organisation: string }, [state]) => ({
      organisation_id: flags.organisation,
      on: state === "on",
    }),
    verb: (ctx, input) => setMessagingDecisions(ctx, MACHINE, input),
    print: (organisation) =>
      report(
        organisation.messaging_decisions
          ? `People of ${organisation.name} may decide escalations in their chats.`
          : `Escalations of ${organisation.name} are decided at the console and by the API alone.`,
        organisationFields(organisation),
      ),
  });
}
