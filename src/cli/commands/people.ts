import { Argument, type Command, Option } from "commander";
import { ROLES, type Role } from "../../core/roles.ts";
import { MACHINE } from "../../services/admin/authority.ts";
import { issuePasswordReset } from "../../services/admin/password-resets.ts";
import { createUser, listUsers, removeUser, resetPasskeys, setUserRole } from "../../services/admin/users.ts";
import type { userResource } from "../../services/resources.ts";
import { group, runsOnLedger } from "../command.ts";
import { given, readSecret } from "../input.ts";
import { report, table } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

export function addUsers(program: Command, tools: CommandLineTools): void {
  const users = group(program, "users", "create, list, change and remove people who sign in");
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
    tell: (user) => report(`Created ${user.name}, ${user.role}.`, userFields(user)),
  });
  addManaging(users, tools);
  addRegaining(users, tools);
}

const userFields = (user: ReturnType<typeof userResource>) =>
  [
    ["id", user.id],
    ["organisation", user.organisation_id],
    ["e-mail", user.email],
    ["role", user.role],
    ["created", user.created_at],
  ] as const;

function addManaging(users: Command, tools: CommandLineTools): void {
  const list = users
    .command("list")
    .summary("list an organisation's people")
    .description("Lists the people of an organisation, without those who were removed.")
    .requiredOption("--organisation <id>", "whose people they are");
  runsOnLedger(list, tools, {
    input: (flags: { organisation: string }) => ({ organisation_id: flags.organisation }),
    verb: (ctx, input) => listUsers(ctx, MACHINE, input),
    tell: ({ data }) =>
      table(
        ["id", "e-mail", "name", "role", "created"],
        data.map((user) => [user.id, user.email, user.name, user.role, user.created_at]),
      ),
  });

  const setRole = users
    .command("set-role")
    .summary("give a person another role")
    .description("Gives a person another role, from their next request on. The last owner stays one.")
    .argument("<user>", "the person's id")
    .addArgument(new Argument("<role>", "the new role").choices([...ROLES]));
  runsOnLedger(setRole, tools, {
    input: (_: object, [userId = "", role]) => ({ user_id: userId, role: role as Role }),
    verb: (ctx, input) => setUserRole(ctx, MACHINE, input),
    tell: (user) => report(`${user.name} is ${user.role}.`, userFields(user)),
  });

  const remove = users
    .command("remove")
    .summary("remove a person")
    .description(
      "Removes a person, for good and at once: their sign-ins end and their passkeys go. API keys are agents', and stay.",
    )
    .argument("<user>", "the person's id");
  runsOnLedger(remove, tools, {
    input: (_: object, [userId = ""]) => ({ user_id: userId }),
    verb: (ctx, input) => removeUser(ctx, MACHINE, input),
    tell: (user) => report(`${user.name} is removed.`, userFields(user)),
  });
}

function addRegaining(users: Command, tools: CommandLineTools): void {
  const resetPassword = users
    .command("reset-password")
    .summary("make a one-time link to a new password")
    .description(
      "Makes a link by which a person chooses a new password, once and within the hour. A link made before it is void.",
    )
    .argument("<user>", "the person's id");
  runsOnLedger(resetPassword, tools, {
    input: (_: object, [userId = ""]) => ({ user_id: userId }),
    verb: (ctx, input) => issuePasswordReset(ctx, MACHINE, input),
    tell: (reset) =>
      report(
        `Made a link for ${reset.user_id}.`,
        [
          ["link", reset.url],
          ["expires", reset.expires_at],
        ],
        "The link is shown once: whoever has it can choose the password. Hand it over where nobody else reads it.",
      ),
  });

  const resetKeys = users
    .command("reset-passkeys")
    .summary("take a person's passkeys away")
    .description("Takes a person's passkeys away, for somebody who lost them. Only this command can.")
    .argument("<user>", "the person's id");
  runsOnLedger(resetKeys, tools, {
    input: (_: object, [userId = ""]) => ({ user_id: userId }),
    verb: (ctx, input) => resetPasskeys(ctx, input),
    tell: (user) => report(`${user.name} has no passkeys now.`, userFields(user)),
  });
}
