import type { Command } from "commander";
import { MACHINE } from "../../services/admin/authority.ts";
import { setPasskeyThreshold } from "../../services/admin/switches.ts";
import { examples, runsOnLedger } from "../command.ts";
import { report } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";
import { organisationFields, thresholdOf } from "./organisations.ts";

export function addPasskeyThreshold(program: Command, tools: CommandLineTools): void {
  const command = program
    .command("passkey-threshold")
    .summary("set the amount above which a person signs with a passkey")
    .description(
      "Above the threshold money leaves only with a person's passkey. While it is set, assets other than USDC are refused.",
    )
    .requiredOption("--organisation <id>", "whose threshold it is")
    .requiredOption("--amount <amount>", "in the smallest unit of USDC, 1000000 is 1.00 USDC; or off");
  examples(
    command,
    "holdfast passkey-threshold --organisation org_… --amount 100000000",
    "holdfast passkey-threshold --organisation org_… --amount off",
  );
  runsOnLedger(command, tools, {
    input: (flags: { organisation: string; amount: string }) => ({
      organisation_id: flags.organisation,
      amount: flags.amount === "off" ? null : flags.amount,
    }),
    verb: (ctx, input) => setPasskeyThreshold(ctx, MACHINE, input),
    print: (organisation) =>
      report(
        organisation.passkey_threshold === null
          ? `${organisation.name} asks for no passkey.`
          : `Above ${thresholdOf(organisation)}, ${organisation.name} asks for a person's passkey.`,
        organisationFields(organisation),
      ),
  });
}
