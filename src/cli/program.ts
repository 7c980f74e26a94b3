import { Command, CommanderError } from "commander";
import { isRefusal, type Refusal, refuse, rootMessage } from "../core/errors.ts";
import { addAuditLog } from "./commands/audit-log.ts";
import { addBackup, addRestore } from "./commands/backup.ts";
import { addAudit, addBalances } from "./commands/books.ts";
import { addJobs } from "./commands/jobs.ts";
import { addKillSwitch, addOrganisations, addPasskeyThreshold } from "./commands/organisations.ts";
import { addUsers } from "./commands/people.ts";
import { addPolicies, addSchemas, addVerifiers } from "./commands/rules.ts";
import { addDemo, addHealth, addOpenApi, addServe } from "./commands/service.ts";
import { addAgents, addKeys, addSessions } from "./commands/spenders.ts";
import { addWebhooks } from "./commands/webhooks.ts";
import { addX402 } from "./commands/x402.ts";
import { CommandFailure } from "./failure.ts";
import type { CommandLineTools } from "./tools.ts";

type Add = (program: Command, tools: CommandLineTools) => void;

/** The commands by name, in groups as the help lists them. */
const GROUPS: readonly (readonly [heading: string, commands: Readonly<Record<string, Add>>])[] = [
  ["Run it:", { demo: addDemo, serve: addServe, health: addHealth, jobs: addJobs }],
  [
    "Who may act:",
    {
      organisations: addOrganisations,
      users: addUsers,
      agents: addAgents,
      keys: addKeys,
      sessions: addSessions,
      "audit-log": addAuditLog,
    },
  ],
  ["What stops them:", { "kill-switch": addKillSwitch, "passkey-threshold": addPasskeyThreshold }],
  ["What decides:", { policies: addPolicies, verifiers: addVerifiers, schemas: addSchemas }],
  ["The money:", { balances: addBalances, x402: addX402, audit: addAudit }],
  ["Who hears of it:", { webhooks: addWebhooks }],
  ["Keep it safe:", { backup: addBackup, restore: addRestore }],
  ["Reference:", { openapi: addOpenApi }],
];
const NAMES = new Set(GROUPS.flatMap(([, commands]) => Object.keys(commands)));

/**
 * The command line, ready to parse. It throws commander's errors and `CommandFailure`.
 *
 * @param named the command that was asked for. Only this one is built: all of them take 5 ms of every start. Without it, or where
 * no command has the name, all are built.
 */
export function buildProgram(tools: CommandLineTools, named?: string): Command {
  const wanted = named !== undefined && NAMES.has(named) ? [named] : [...NAMES];
  const program = new Command("holdfast")
    .description("Holds money against a promise, checks the deliverable itself, and settles by policy.")
    .version(tools.version, "-V, --version", "print the version")
    .helpOption("-h, --help", "print this help")
    .configureHelp({ subcommandTerm: termOf, commandUsage: usageOf })
    .configureOutput({
      writeOut: (text) => tools.print(text.replace(/\n$/, "")),
      // What is wrong is said once, in the error's body.
      writeErr: () => {},
    })
    .exitOverride();
  for (const [heading, commands] of GROUPS) {
    program.commandsGroup(heading);
    for (const [name, add] of Object.entries(commands)) if (wanted.includes(name)) add(program, tools);
  }
  return program
    .addHelpCommand(new Command("help").argument("[command]").summary("print the help of a command"))
    .addHelpText(
      "after",
      [
        "",
        "Every command takes --data, and --json for programs. It may run while the server does.",
        "`holdfast <command> --help` says more.",
      ].join("\n"),
    );
}

const argumentsOf = (command: Command): readonly string[] =>
  command.registeredArguments.map((argument) =>
    argument.required ? `<${argument.name()}>` : `[${argument.name()}]`,
  );

const termOf = (command: Command): string => [command.name(), ...argumentsOf(command)].join(" ");

/** The path to a command, its arguments, and the options that it cannot do without. */
function usageOf(command: Command): string {
  const path: string[] = [];
  for (let next: Command | null = command; next; next = next.parent) path.unshift(next.name());
  const mandatory = command.options.filter((option) => option.mandatory).map((option) => option.flags);
  const rest = command.commands.length > 0 ? "<command>" : "[options]";
  return [...path, ...argumentsOf(command), ...mandatory, rest].join(" ");
}

/**
 * Runs one command line to its end.
 *
 * @param args what follows the executable's name
 * @returns the exit code: 0, or 1 with the error's body on stderr
 */
export async function runCommandLine(tools: CommandLineTools, args: readonly string[]): Promise<number> {
  const program = buildProgram(tools, args[0]);
  try {
    await program.parseAsync([...args], { from: "user" });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0;
    if (args.length === 0) {
      program.outputHelp();
      return 0;
    }
    const refusal = refusalOf(error, args);
    if (refusal) tools.printError(JSON.stringify(tools.errorBody(refusal)));
    return 1;
  }
}

/** What is wrong, as a refusal; null where it has been said. */
function refusalOf(error: unknown, args: readonly string[]): Refusal | null {
  if (error instanceof CommandFailure) return error.refusal;
  if (isRefusal(error)) return error;
  if (!(error instanceof CommanderError)) {
    // Whoever runs the command owns the machine, and may see what failed on it.
    return refuse("internal_error", rootMessage(error));
  }
  return refuse(
    "validation_failed",
    error.code === "commander.help"
      ? `${args[0]}: name one of its commands; \`holdfast ${args[0]} --help\` lists them`
      : error.message.replace(/^error: /, "").replaceAll("\n", " "),
  );
}
