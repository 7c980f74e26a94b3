import { Argument, type Command } from "commander";
import { MACHINE } from "../../services/admin/authority.ts";
import { setReceiptSpecs } from "../../services/admin/switches.ts";
import { examples, runsOnLedger } from "../command.ts";
import { report } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";
import { organisationFields } from "./organisations.ts";

export function addReceiptSpecs(program: Command, tools: CommandLineTools): void {
  const command = program
    .command("receipt-specs")
    .summary("hide specs on public receipts, or show them")
    .description(
      "A receipt is public. Where an organisation hides its specs, receipts show their hashes alone: at once, those of warrants that are settled already among them. Who may read a warrant still reads its spec. Copies that others have made of a receipt stay as they are.",
    )
    .addArgument(new Argument("<state>", "hidden leaves the specs out").choices(["hidden", "shown"]))
    .requiredOption("--organisation <id>", "whose receipts they are");
  examples(command, "holdfast receipt-specs hidden --organisation org_…");
  runsOnLedger(command, tools, {
    input: (flags: { organisation: string }, [state]) => ({
      organisation_id: flags.organisation,
      hidden: state === "hidden",
    }),
    verb: (ctx, input) => setReceiptSpecs(ctx, MACHINE, input),
    print: (organisation) =>
      report(
        organisation.receipt_specs === "hidden"
          ? `Receipts of ${organisation.name} show the hashes of its specs.`
          : `Receipts of ${organisation.name} show its specs.`,
        organisationFields(organisation),
      ),
  });
}
