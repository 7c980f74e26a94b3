import { Command, CommanderError } from "commander";
import { isRefusal, type Refusal, refuse, rootMessage } from "../core/errors.ts";
import { printableLines } from "../core/hidden-characters.ts";
import { pathOf } from "./command.ts";
import { addAgents } from "./commands/agents.ts";
import { addAudit } from "./commands/audit.ts";
import { addAuditLog } from "./commands/audit-log.ts";
import { addBackup } from "./commands/backup.ts";
import { addBalances } from "./commands/balances.ts";
import { addChecks } from "./commands/checks.ts";
import { addCopy } from "./commands/copy.ts";
import { addDemo } from "./commands/demo.ts";
import { addDeposits } from "./commands/deposits.ts";
import { addHealth } from "./commands/health.ts";
import { addJobs } from "./commands/jobs.ts";
import { addKeys } from "./commands/keys.ts";
import { addKillSwitch } from "./commands/kill-switch.ts";
import { addMessagingDecisions } from "./commands/messaging-decisions.ts";
import { addOpenApi } from "./commands/openapi.ts";
import { addOrganisations } from "./commands/organisations.ts";
import { addPasskeyThreshold } from "./commands/passkey-threshold.ts";
import { addPayouts } from "./commands/payouts.ts";
import { addPolicies } from "./commands/policies.ts";
import { addReceipt } from "./commands/receipt.ts";
import { addReceiptSpecs } from "./commands/receipt-specs.ts";
import { addRestore } from "./commands/restore.ts";
import { addSchemas } from "./commands/schemas.ts";
import { addSecondFactor } from "./commands/second-factor.ts";
import { addServe } from "./commands/serve.ts";
import { addSessions } from "./commands/sessions.ts";
import { addSolvency } from "./commands/solvency.ts";
import { addSourceKeys } from "./commands/source-keys.ts";
import { addStatements } from "./commands/statements.ts";
import { addTreasuries } from "./commands/treasuries.ts";
import { addUsers } from "./commands/users.ts";
import { addVerifiers } from "./commands/verifiers.ts";
import { addWebhooks } from "./commands/webhooks.ts";
import { addWitness } from "./commands/witness.ts";
import { addX402 } from "./commands/x402.ts";
import { CommandFailure } from "./failure.ts";
import { failureSentence } from "./failure-sentence.ts";
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
  [
    "What stops them:",
    {
      "kill-switch": addKillSwitch,
      "passkey-threshold": addPasskeyThreshold,
      "second-factor": addSecondFactor,
      "messaging-decisions": addMessagingDecisions,
    },
  ],
  [
    "What decides:",
    {
      policies: addPolicies,
      verifiers: addVerifiers,
      schemas: addSchemas,
      checks: addChecks,
      "source-keys": addSourceKeys,
    },
  ],
  [
    "The money:",
    {
      balances: addBalances,
      deposits: addDeposits,
      payouts: addPayouts,
      solvency: addSolvency,
      statements: addStatements,
      treasuries: addTreasuries,
      x402: addX402,
      audit: addAudit,
    },
  ],
  [
    "Who hears of it:",
    { webhooks: addWebhooks, receipt: addReceipt, "receipt-specs": addReceiptSpecs, witness: addWitness },
  ],
  ["Keep it safe:", { backup: addBackup, restore: addRestore, copy: addCopy }],
  ["Reference:", { openapi: addOpenApi }],
];
const NAMES = new Set(GROUPS.flatMap(([, commands]) => Object.keys(commands)));

/**
 * The command line, ready to parse. Parsing throws commander's errors, and `CommandFailure` where a command
 * fails.
 *
 * @param named the command on the line. Only this one is built, since building all of them takes 5 ms of
 *   every start. All are built where there is no name, or no such command
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
      // `runCommandLine` prints what is wrong.
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

/** A command as it is typed, with its arguments and its mandatory options. */
function usageOf(command: Command): string {
  const mandatory = command.options.filter((option) => option.mandatory).map((option) => option.flags);
  const rest = command.commands.length > 0 ? "<command>" : "[options]";
  return [pathOf(command), ...argumentsOf(command), ...mandatory, rest].join(" ");
}

/**
 * Runs one command line to its end.
 *
 * @param args what follows the executable's name
 * @returns the exit code: 0, or 1 with what is wrong on stderr, as a sentence or with `--json` as the error's body
 */
export async function runCommandLine(givenTools: CommandLineTools, args: readonly string[]): Promise<number> {
  const tools = printingSafely(givenTools);
  const program = buildProgram(tools, args[0]);
  let command = program;
  forEachCommand(program, (each) => {
    each.exitOverride((error) => {
      command = each;
      throw error;
    });
  });
  program.hook("preAction", (_, running) => {
    command = running;
  });
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
    if (!refusal) return 1;
    const text = wantsJson(args) ? JSON.stringify(tools.errorBody(refusal)) : failureSentence(error, command);
    tools.printError(text);
    return 1;
  }
}

/** Whatever a command prints, in words or as JSON: what others wrote cannot control the terminal, even where a command forgets it. */
const printingSafely = (tools: CommandLineTools): CommandLineTools => ({
  ...tools,
  print: (text) => tools.print(printableLines(text)),
  printError: (text) => tools.printError(printableLines(text)),
});

function forEachCommand(command: Command, visit: (command: Command) => void): void {
  visit(command);
  for (const each of command.commands) forEachCommand(each, visit);
}

/** Whether `--json` is anywhere on the line, also on one that cannot be parsed. What follows `--` is not an option. */
function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  return args.slice(0, end === -1 ? args.length : end).includes("--json");
}

/** What is wrong, as a refusal; null where it has been printed. */
function refusalOf(error: unknown, args: readonly string[]): Refusal | null {
  if (error instanceof CommandFailure) return error.refusal;
  if (isRefusal(error)) return error;
  if (!(error instanceof CommanderError)) {
    // Unlike a caller of the API, whoever runs a command may see what failed on the machine.
    return refuse("internal_error", rootMessage(error));
  }
  return refuse(
    "validation_failed",
    error.code === "commander.help"
      ? `${args[0]}: name one of its commands; \`holdfast ${args[0]} --help\` lists them`
      : error.message.replace(/^error: /, "").replaceAll("\n", " "),
  );
}
