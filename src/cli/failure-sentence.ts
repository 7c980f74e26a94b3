import { type Command, CommanderError } from "commander";
import { type ErrorCode, isRefusal, type Refusal, rootMessage, statusOf } from "../core/errors.ts";
import { printable } from "../core/hidden-characters.ts";
import { pathOf } from "./command.ts";
import { CommandFailure } from "./failure.ts";

/**
 * A failure as people read it on stderr. It is one line: what is wrong and, where there is one, the next step. An example is
 * `holdfast: --organisation is missing. See holdfast agents create --help`.
 *
 * @param command the command that was typed, as far as the line could be read
 */
export function failureSentence(error: unknown, command: Command): string {
  const { problem, next } = partsOf(error, command);
  const sentence = printable(shortened(problem)).replace(/[^.?!…]$/, "$&.");
  return `holdfast: ${sentence}${next === null ? "" : ` ${next}`}`;
}

/** A longer message is cut: it may repeat a whole document that was typed. */
const PROBLEM_LENGTH_MAX = 1_000;

const shortened = (problem: string): string =>
  problem.length > PROBLEM_LENGTH_MAX ? `${problem.slice(0, PROBLEM_LENGTH_MAX)}…` : problem;

type Parts = { readonly problem: string; readonly next: string | null };

function partsOf(error: unknown, command: Command): Parts {
  const help = `See ${pathOf(command)} --help`;
  if (error instanceof CommanderError) return { problem: lineProblem(error, command), next: help };
  const failure = error instanceof CommandFailure ? error : null;
  const refusal = failure?.refusal ?? (isRefusal(error) ? error : null);
  if (!refusal) {
    return {
      problem: `unexpected fault: ${rootMessage(error)}`,
      next: "Check the disk and the data folder, and try again; holdfast audit checks the ledger",
    };
  }
  const { problem, isOfThisCommand } = refusalProblem(refusal, command);
  const helpHelps =
    isOfThisCommand && statusOf(refusal.refused) === 400 && !NAMES_A_COMMAND.test(refusal.message);
  const next = failure?.nextStep ?? NEXT_STEPS[refusal.refused] ?? (helpHelps ? help : null);
  return { problem, next };
}

/** A message that names a command contains the next step already. */
const NAMES_A_COMMAND = /\bholdfast [a-z]/;

/** The next step after a refusal with this code, for every command. */
export const NEXT_STEPS: Readonly<Partial<Record<ErrorCode, string>>> = {
  organisation_not_found: "See holdfast organisations list",
  agent_not_found: "See holdfast agents list",
  api_key_not_found: "See holdfast keys list",
  session_not_found: "See holdfast agents show, which names an agent's session",
  user_not_found: "See holdfast users list",
  webhook_not_found: "See holdfast webhooks list",
  delivery_not_found: "See holdfast webhooks deliveries",
  deposit_not_found: "See holdfast deposits list",
  payout_not_found: "See holdfast payouts list",
  statement_not_found: "See holdfast solvency list",
  purchase_not_found: "See holdfast x402 list",
  source_key_not_found: "See holdfast source-keys list",
  check_not_found: "See the help of holdfast checks export, which says where the ids of checks are",
  api_key_not_active: "Make another with holdfast keys create",
  last_owner: "Make somebody else an owner first, with holdfast users set-role",
};

/** The messages of commander about a line that it cannot read, and our sentences for them. */
const REWORDED: readonly (readonly [pattern: RegExp, sentence: string])[] = [
  [/^required option '(--[\w-]+).*' not specified$/, "$1 is missing"],
  [/^missing required argument '(.+)'$/, "<$1> is missing"],
  [/^option '(--[\w-]+).*' argument missing$/, "$1 needs a value"],
  [/^unknown option '(.*)'$/s, "there is no option $1"],
  [/^unknown command '(.*)'$/s, 'there is no command "$1"'],
  [
    /^option '(--[\w-]+).*?' argument '(.*)' is invalid\. Allowed choices are (.*)\.$/s,
    '$1 is "$2", and must be one of $3',
  ],
  [
    /^command-argument value '(.*)' is invalid for argument '(.+)'\. Allowed choices are (.*)\.$/s,
    '<$2> is "$1", and must be one of $3',
  ],
];

/** The line that commander adds where a command or an option has a similar name. */
const SUGGESTION = /\n\((Did you mean .*\?)\)$/;

function lineProblem({ code, message }: CommanderError, command: Command): string {
  if (code === "commander.help") {
    if (!command.parent) return "there is no command of that name";
    const names = command.commands.map((each) => each.name()).join(", ");
    return `${command.name()} needs one of its commands: ${names}`;
  }
  const [, suggestion] = SUGGESTION.exec(message) ?? [];
  const said = message.replace(/^error: /, "").replace(SUGGESTION, "");
  const [pattern, sentence] = REWORDED.find(([each]) => each.test(said)) ?? ["", ""];
  const problem = said.replace(pattern, sentence);
  return suggestion === undefined ? problem : `${problem}. ${suggestion}`;
}

const FIELD = /^([\w-]+|<[\w-]+>)((?:\.\w+)*): (.*)$/s;
const PREDICATE = /^(must|is|has|was|may|needs|cannot be)\b/;

/** A refusal's message. Where it starts with a field's name, the name of the option or argument replaces it. */
function refusalProblem({ message }: Refusal, command: Command) {
  const [, field, path = "", problem = ""] = FIELD.exec(message) ?? [];
  const typed = field === undefined ? null : typedFor(field, command);
  if (typed === null && !field?.startsWith(VARIABLE)) return { problem: message, isOfThisCommand: false };
  const subject = [typed ?? field, ...path.split(".").slice(1)].join(": ");
  return {
    problem: `${subject}${PREDICATE.test(problem) ? "" : ":"} ${problem}`,
    isOfThisCommand: typed !== null,
  };
}

const VARIABLE = "HOLDFAST_";

/**
 * The option or argument of a command that gives a field its value, such as `--ceiling` for `amount_ceiling`. For a variable it
 * is the option that was typed instead of it. Null where there is none.
 */
function typedFor(field: string, command: Command): string | null {
  if (field.startsWith("--") || field.startsWith("<")) return field;
  if (field.startsWith(VARIABLE)) {
    const name = `--${kebabCase(field.slice(VARIABLE.length))}`;
    const option = command.options.find(({ long }) => long === name);
    return option && command.getOptionValueSource(option.attributeName()) === "cli" ? name : null;
  }
  const candidates = [
    ...command.options.map((option) => ({ name: option.name(), typed: `--${option.name()}` })),
    ...command.registeredArguments.map((each) => ({ name: each.name(), typed: `<${each.name()}>` })),
  ];
  const wanted = kebabCase(field);
  const match =
    candidates.find(({ name }) => name === wanted) ??
    candidates.find(({ name }) => wanted.startsWith(`${name}-`) || wanted.endsWith(`-${name}`));
  return match?.typed ?? null;
}

const kebabCase = (name: string): string => name.toLowerCase().replaceAll("_", "-");
