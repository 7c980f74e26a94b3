import { Argument, type Command, Option } from "commander";
import { ROLES, type Role } from "../../core/roles.ts";
import type { userResource } from "../../resources/user.ts";
import { MACHINE } from "../../services/admin/authority.ts";
import { issuePasswordReset } from "../../services/admin/password-resets.ts";
import { endSignInsOf, listSignIns } from "../../services/admin/sign-ins.ts";
import { createUser, listUsers, removeUser, resetPasskeys, setUserRole } from "../../services/admin/users.ts";
import { examples, group, runsOnLedger } from "../command.ts";
import { given, readSecret } from "../input.ts";
import { report, table } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

const userFields = (user: ReturnType<typeof userResource>) =>
  [
    ["id", user.id],
    ["organisation", user.organisation_id],
    ["e-mail", user.email],
    ["role", user.role],
    ["created", user.created_at],
  ] as const;

export function addUsers(program: Command, tools: CommandLineTools): void {
  const users = group(program, "users", "create, list, change and remove people who sign in");
  addCreate(users, tools);
  addList(users, tools);
  addSetRole(users, tools);
  addRemove(users, tools);
  addResetPassword(users, tools);
  addResetPasskeys(users, tools);
  addSignIns(users, tools);
  addSignOut(users, tools);
}

function addCreate(users: Command, tools: CommandLineTools): void {
  const create = users
    .command("create")
    .summary("create a person of an organisation")
    .description("Creates a person who can sign in. Each role may do what the ones before it may.")
    .requiredOption("--organisation <id>", "whose person it is")
    .requiredOption("--email <email>", "the address with which they sign in; no other person here has it")
    .option("--password <password>", "12 to 256 characters, hard to guess; this or --password-file")
    .option("--password-file <file>", "a file that holds the password; - is the standard input")
    .addOption(new Option("--role <role>", "what they may do").choices([...ROLES]).makeOptionMandatory())
    .option("--name <name>", "what they are called (default: the part of the e-mail before the @)");
  examples(
    create,
    "holdfast users create --organisation org_… --email bob@example.com --role operator --password-file -",
  );
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
    print: (user) => report(`Created ${user.name}, ${user.role}.`, userFields(user)),
  });
}

function addList(users: Command, tools: CommandLineTools): void {
  const list = users
    .command("list")
    .summary("list an organisation's people")
    .description("Lists the people of an organisation, without those who were removed.")
    .requiredOption("--organisation <id>", "whose people they are");
  examples(list, "holdfast users list --organisation org_…");
  runsOnLedger(list, tools, {
    input: (flags: { organisation: string }) => ({ organisation_id: flags.organisation }),
    verb: (ctx, input) => listUsers(ctx, MACHINE, input),
    print: ({ data }) =>
      table(
        ["id", "e-mail", "name", "role", "created"],
        data.map((user) => [user.id, user.email, user.name, user.role, user.created_at]),
      ),
  });
}

function addSetRole(users: Command, tools: CommandLineTools): void {
  const setRole = users
    .command("set-role")
    .summary("give a person another role")
    .description(
      "Gives a person another role, from their next request on. An organisation's last owner stays its owner.",
    )
    .argument("<user>", "the person's id")
    .addArgument(new Argument("<role>", "the new role").choices([...ROLES]));
  examples(setRole, "holdfast users set-role usr_… admin");
  runsOnLedger(setRole, tools, {
    input: (_: object, [userId = "", role]) => ({ user_id: userId, role: role as Role }),
    verb: (ctx, input) => setUserRole(ctx, MACHINE, input),
    print: (user) => report(`${user.name} is ${user.role}.`, userFields(user)),
  });
}

function addRemove(users: Command, tools: CommandLineTools): void {
  const remove = users
    .command("remove")
    .summary("remove a person")
    .description(
      "Removes a person at once, which cannot be undone: they are signed out everywhere, and their passkeys are deleted. API keys belong to agents, and stay.",
    )
    .argument("<user>", "the person's id");
  examples(remove, "holdfast users remove usr_…");
  runsOnLedger(remove, tools, {
    input: (_: object, [userId = ""]) => ({ user_id: userId }),
    verb: (ctx, input) => removeUser(ctx, MACHINE, input),
    print: (user) => report(`${user.name} is removed.`, userFields(user)),
  });
}

function addResetPassword(users: Command, tools: CommandLineTools): void {
  const resetPassword = users
    .command("reset-password")
    .summary("make a one-time link to a new password")
    .description(
      "Makes a link by which a person chooses a new password, once and within one hour. Links that were made before no longer work.",
    )
    .argument("<user>", "the person's id");
  examples(resetPassword, "holdfast users reset-password usr_…");
  runsOnLedger(resetPassword, tools, {
    input: (_: object, [userId = ""]) => ({ user_id: userId }),
    verb: (ctx, input) => issuePasswordReset(ctx, MACHINE, input),
    print: (reset) =>
      report(
        `Made a link for ${reset.user_id}.`,
        [
          ["link", reset.url],
          ["expires", reset.expires_at],
        ],
        "The link is shown once: whoever has it can choose the password. Hand it over where nobody else reads it.",
      ),
  });
}

function addResetPasskeys(users: Command, tools: CommandLineTools): void {
  const resetKeys = users
    .command("reset-passkeys")
    .summary("delete a person's passkeys")
    .description("Deletes all passkeys of a person, for somebody who lost them. Only this command can.")
    .argument("<user>", "the person's id");
  examples(resetKeys, "holdfast users reset-passkeys usr_…");
  runsOnLedger(resetKeys, tools, {
    input: (_: object, [userId = ""]) => ({ user_id: userId }),
    verb: (ctx, input) => resetPasskeys(ctx, input),
    print: (user) => report(`${user.name} has no passkeys now.`, userFields(user)),
  });
}

function addSignIns(users: Command, tools: CommandLineTools): void {
  const signIns = users
    .command("sign-ins")
    .summary("list where a person is signed in")
    .description(
      "Lists a person's sign-ins that have not ended: since when, last used (up to an hour ago), until when, from which address and by which program. Of an IPv6 address it shows the /64 network.",
    )
    .argument("<user>", "the person's id");
  examples(signIns, "holdfast users sign-ins usr_…");
  runsOnLedger(signIns, tools, {
    input: (_: object, [userId = ""]) => ({ user_id: userId }),
    verb: (ctx, input) => listSignIns(ctx, MACHINE, input),
    print: ({ data }) =>
      table(
        ["id", "since", "last used", "until", "mode", "address", "program"],
        data.map((signIn) => [
          ...[signIn.id, signIn.created_at, signIn.last_used_at, signIn.expires_at, signIn.mode],
          ...[signIn.address ?? "not known", signIn.agent ?? "not known"],
        ]),
      ),
  });
}

function addSignOut(users: Command, tools: CommandLineTools): void {
  const signOut = users
    .command("sign-out")
    .summary("end a person's sign-ins")
    .description(
      "Ends all sign-ins of a person at once, or the one that is named. They may sign in again: `users remove` or `users reset-password` keeps somebody out.",
    )
    .argument("<user>", "the person's id")
    .option("--sign-in <id>", "only this one, as `users sign-ins` lists it");
  examples(signOut, "holdfast users sign-out usr_…", "holdfast users sign-out usr_… --sign-in sgn_…");
  type Flags = { signIn?: string };
  runsOnLedger(signOut, tools, {
    input: ({ signIn }: Flags, [userId = ""]) => ({ user_id: userId, ...given({ sign_in_id: signIn }) }),
    verb: (ctx, input) => endSignInsOf(ctx, MACHINE, input, null),
    print: (ended) =>
      report(`Sign-ins ended: ${ended.sign_ins.length}.`, [
        ["person", ended.user_id],
        ...ended.sign_ins.map((id) => ["sign-in", id] as const),
      ]),
  });
}
