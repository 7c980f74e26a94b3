import { type Command, Option } from "commander";
import { ROLES, type Role } from "../../core/roles.ts";
import { MACHINE } from "../../services/admin/authority.ts";
import { createOrganisation } from "../../services/admin/organisations.ts";
import { createUser } from "../../services/admin/users.ts";
import { examples, group, runsOnLedger } from "../command.ts";
import { given, readSecret } from "../input.ts";
import { report } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

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
}

export function addUsers(program: Command, tools: CommandLineTools): void {
  const users = group(program, "users", "create people who sign in");
  const create = users
    .command("create")
    .summary("create a person of an organisation")
    .description("Creates a person who can sign in. Each role may do what the ones before it may.")
    .requiredOption("--organisation <id>", "whose person it is")
    .requiredOption("--email <email>", "whom they sign in as; one person of the instance has it")
    .option("--password <password>", "8 to 256 characters")
    .option("--password-file <file>", "a file with the password; - is the standard input")
    .addOption(new Option("--role <role>", "what they may do").choices([...ROLES]).makeOptionMandatory())
    .option("--name <name>", "what they are called (default: the e-mail's part before the @)");
  type Flags = {
    organisation: string;
    email: string;
    password?: string;
    passwordFile?: string;
    role: Role;
    name?: string;
  };
  runsOnLedger(create, tools, {
    input: async (flags: Flags) => ({
      organisation_id: flags.organisation,
      email: flags.email,
      password: await readSecret("--password", flags.password, flags.passwordFile),
      role: flags.role,
      ...given({ name: flags.name }),
    }),
    verb: (ctx, input) => createUser(ctx, MACHINE, input),
    tell: (user) =>
      report(`Created ${user.name}, ${user.role}.`, [
        ["id", user.id],
        ["organisation", user.organisation_id],
        ["e-mail", user.email],
        ["role", user.role],
        ["created", user.created_at],
      ]),
  });
}
