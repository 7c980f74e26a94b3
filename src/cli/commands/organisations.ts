import { Argument, type Command } from "commander";
import { displayAmount } from "../../core/money.ts";
import { MACHINE } from "../../services/admin/authority.ts";
import {
  createOrganisation,
  listOrganisations,
  showOrganisation,
} from "../../services/admin/organisations.ts";
import { setKillSwitch, setPasskeyThreshold } from "../../services/admin/switches.ts";
import { examples, group, runsOnLedger } from "../command.ts";
import { readSecret } from "../input.ts";
import { report, table } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

/** Organisations, and what they turn on and off. */

type Switches = {
  readonly id: string;
  readonly name: string;
  readonly kill_switch: boolean;
  readonly passkey_threshold: string | null;
};

const organisationFields = (organisation: Switches) =>
  [
    ["id", organisation.id],
    ["name", organisation.name],
    ["kill switch", organisation.kill_switch ? "on" : "off"],
    ["passkey threshold", thresholdOf(organisation)],
  ] as const;

const thresholdOf = ({ passkey_threshold: threshold }: Switches): string =>
  threshold === null ? "off" : displayAmount(BigInt(threshold), "USDC");

export function addOrganisations(program: Command, tools: CommandLineTools): void {
  const organisations = group(program, "organisations", "create organisations, each with its first owner");
  const create = organisations
    .command("create")
    .summary("create an organisation and its owner")
    .description("Creates an organisation and the person who owns it.")
    .requiredOption("--name <name>", "the organisation's name")
    .requiredOption("--owner-email <email>", "whom the owner signs in as")
    .option("--owner-password <password>", "8 to 256 characters")
    .option("--owner-password-file <file>", "a file with the password; - is the standard input");
  examples(
    create,
    "holdfast organisations create --name Acme --owner-email ada@example.com --owner-password-file -",
  );
  type Flags = { name: string; ownerEmail: string; ownerPassword?: string; ownerPasswordFile?: string };
  runsOnLedger(create, tools, {
    input: async (flags: Flags) => ({
      name: flags.name,
      owner_email: flags.ownerEmail,
      owner_password: await readSecret("--owner-password", flags.ownerPassword, flags.ownerPasswordFile),
    }),
    verb: createOrganisation,
    create: true,
    tell: ({ organisation, owner }) =>
      report(`Created the organisation ${organisation.name}.`, [
        ["organisation", organisation.id],
        ["owner", owner.id],
        ["e-mail", owner.email],
        ["created", organisation.created_at],
      ]),
  });

  const list = organisations
    .command("list")
    .summary("list every organisation")
    .description("Lists the organisations of this installation, with their switches.");
  runsOnLedger(list, tools, {
    input: () => ({}),
    verb: async (ctx) => listOrganisations(ctx),
    tell: ({ data }) =>
      table(
        ["id", "name", "kill switch", "passkey threshold", "created"],
        data.map((organisation) => [
          organisation.id,
          organisation.name,
          organisation.kill_switch ? "on" : "off",
          thresholdOf(organisation),
          organisation.created_at,
        ]),
      ),
  });

  const show = organisations
    .command("show")
    .summary("show an organisation")
    .description("Shows an organisation and its switches.")
    .argument("<organisation>", "the organisation's id");
  runsOnLedger(show, tools, {
    input: (_: object, [organisationId = ""]) => ({ organisation_id: organisationId }),
    verb: (ctx, input) => showOrganisation(ctx, MACHINE, input),
    tell: (organisation) =>
      report(`The organisation ${organisation.name}.`, organisationFields(organisation)),
  });
}

export function addKillSwitch(program: Command, tools: CommandLineTools): void {
  const command = program
    .command("kill-switch")
    .summary("stop new warrants, or let them open again")
    .description(
      "While the kill switch is on, the organisation opens no warrant, in either mode. What is open goes on: it is verified, settled, and its money returns.",
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
    tell: (organisation) =>
      report(
        organisation.kill_switch
          ? `${organisation.name} opens no new warrants; what is open goes on.`
          : `${organisation.name} opens warrants.`,
        organisationFields(organisation),
      ),
  });
}

export function addPasskeyThreshold(program: Command, tools: CommandLineTools): void {
  const command = program
    .command("passkey-threshold")
    .summary("set the amount above which a person signs with a passkey")
    .description(
      "Above the threshold money leaves only with a person's passkey. While it is set, assets other than USDC are refused.",
    )
    .requiredOption("--organisation <id>", "whose threshold it is")
    .requiredOption("--amount <amount>", "units of USDC, 1000000 is 1.00 USDC; or off");
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
    tell: (organisation) =>
      report(
        organisation.passkey_threshold === null
          ? `${organisation.name} asks for no passkey.`
          : `Above ${thresholdOf(organisation)}, ${organisation.name} asks for a person's passkey.`,
        organisationFields(organisation),
      ),
  });
}
