import type { Command } from "commander";
import { displayAmount } from "../../core/money.ts";
import { MACHINE } from "../../services/admin/authority.ts";
import {
  createOrganisation,
  listOrganisations,
  showOrganisation,
} from "../../services/admin/organisations.ts";
import { examples, group, runsOnLedger } from "../command.ts";
import { readSecret } from "../input.ts";
import { report, table } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

type Organisation = {
  readonly id: string;
  readonly name: string;
  readonly kill_switch: boolean;
  readonly passkey_threshold: string | null;
  readonly receipt_specs: "shown" | "hidden";
  readonly second_factor: boolean;
  readonly messaging_decisions: boolean;
};

/** An organisation and its switches, for `report`. */
export const organisationFields = (organisation: Organisation) =>
  [
    ["id", organisation.id],
    ["name", organisation.name],
    ["kill switch", organisation.kill_switch ? "on" : "off"],
    ["passkey threshold", thresholdOf(organisation)],
    ["specs on receipts", organisation.receipt_specs],
    ["second factor", organisation.second_factor ? "on" : "off"],
    ["decisions in chats", organisation.messaging_decisions ? "on" : "off"],
  ] as const;

/** The passkey threshold for people: an amount, or off. */
export const thresholdOf = ({ passkey_threshold: threshold }: Organisation): string =>
  threshold === null ? "off" : displayAmount(BigInt(threshold), "USDC");

export function addOrganisations(program: Command, tools: CommandLineTools): void {
  const organisations = group(program, "organisations", "create organisations, each with its first owner");
  addCreate(organisations, tools);
  addList(organisations, tools);
  addShow(organisations, tools);
}

function addCreate(organisations: Command, tools: CommandLineTools): void {
  const create = organisations
    .command("create")
    .summary("create an organisation and its owner")
    .description(
      "Creates an organisation and the person who owns it. Makes the ledger where the data folder has none.",
    )
    .requiredOption("--name <name>", "the organisation's name")
    .requiredOption("--owner-email <email>", "the address with which the owner signs in")
    .option(
      "--owner-password <password>",
      "12 to 256 characters, hard to guess; this or --owner-password-file",
    )
    .option("--owner-password-file <file>", "a file that holds the password; - is the standard input");
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
    print: ({ organisation, owner }) =>
      report(`Created the organisation ${organisation.name}.`, [
        ["organisation", organisation.id],
        ["owner", owner.id],
        ["e-mail", owner.email],
        ["created", organisation.created_at],
      ]),
  });
}

function addList(organisations: Command, tools: CommandLineTools): void {
  const list = organisations
    .command("list")
    .summary("list every organisation")
    .description("Lists the organisations of this installation, with their switches.");
  examples(list, "holdfast organisations list");
  runsOnLedger(list, tools, {
    input: () => ({}),
    verb: async (ctx) => listOrganisations(ctx),
    print: ({ data }) =>
      table(
        ["id", "name", "kill switch", "passkey threshold", "second factor", "created"],
        data.map((organisation) => [
          organisation.id,
          organisation.name,
          organisation.kill_switch ? "on" : "off",
          thresholdOf(organisation),
          organisation.second_factor ? "on" : "off",
          organisation.created_at,
        ]),
      ),
  });
}

function addShow(organisations: Command, tools: CommandLineTools): void {
  const show = organisations
    .command("show")
    .summary("show an organisation")
    .description("Shows an organisation and its switches.")
    .argument("<organisation>", "the organisation's id");
  examples(show, "holdfast organisations show org_…");
  runsOnLedger(show, tools, {
    input: (_: object, [organisationId = ""]) => ({ organisation_id: organisationId }),
    verb: (ctx, input) => showOrganisation(ctx, MACHINE, input),
    print: (organisation) =>
      report(`The organisation ${organisation.name}.`, organisationFields(organisation)),
  });
}
