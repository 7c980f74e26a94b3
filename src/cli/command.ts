import { type Command, Option } from "commander";
import type { Refusal } from "../core/errors.ts";
import { NO_PROGRESS, type Progress, withProgress } from "../core/progress.ts";
import { MODES } from "../core/roles.ts";
import type { Context } from "../services/context.ts";
import { CommandFailure, orFail } from "./failure.ts";
import { given } from "./input.ts";
import type { CommandLineTools } from "./tools.ts";

/** Options that every command takes. */
export type CommonFlags = { readonly data?: string; readonly json?: boolean };

export const withCommonFlags = (command: Command): Command =>
  command
    .option("--data <folder>", "the data folder (default: HOLDFAST_DATA, else ./data)")
    .option("--json", "print exactly one JSON object");

export const modeOption = (): Option =>
  new Option("--mode <mode>", "sandbox, where no money is real, or live")
    .choices([...MODES])
    .makeOptionMandatory();

/** Where the server listens. */
export const addressOptions = (command: Command): Command =>
  command
    .option("--host <address>", "the address that it listens at (default: HOLDFAST_HOST, else 127.0.0.1)")
    .option("--port <number>", "the port that it listens at (default: HOLDFAST_PORT, else 8080)");

/** The group of a noun's commands, such as `agents`. */
export const group = (program: Command, name: string, summary: string): Command =>
  program
    .command(name)
    .summary(summary)
    .description(`${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`)
    .helpCommand(false);

/** Adds examples to the end of a command's help. Every command has at least one. */
export const examples = (command: Command, ...lines: readonly string[]): Command =>
  command.addHelpText("after", ["", "Examples:", ...lines.map((line) => `  $ ${line}`)].join("\n"));

/** A command as it is typed, such as `holdfast agents create`. */
export const pathOf = (command: Command): string =>
  command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();

/** A verb's answer when it does not refuse. */
export type Answer<Verb extends (...args: never[]) => Promise<unknown>> = Exclude<
  Awaited<ReturnType<Verb>>,
  { readonly refused: unknown }
>;

/**
 * Does work that may take long, and shows its progress on a terminal. With `--json` nothing is shown, since a
 * program reads the output. Work that prints must stop the progress first.
 */
export const showingProgress = <Answer>(
  tools: CommandLineTools,
  { step, json = false }: { readonly step: string; readonly json?: boolean | undefined },
  work: (progress: Progress) => Promise<Answer>,
): Promise<Answer> => withProgress(json ? NO_PROGRESS : tools.startProgress(step), work);

/** A command that runs one verb on the ledger of a data folder. */
type LedgerCommand<Flags, Input, Answer extends object> = {
  /** From flags and arguments to the verb's input. Runs before the ledger is opened. */
  readonly input: (flags: Flags, args: readonly string[]) => Input | Promise<Input>;
  readonly verb: (ctx: Context, input: Input, progress: Progress) => Promise<Answer | Refusal>;
  /** Whether a ledger is made where the folder has none. Without it a mistyped folder is refused. */
  readonly create?: boolean;
  /**
   * The name of the work, shown to a person who waits longer than two seconds (default: the command's name).
   */
  readonly step?: string;
  /** The text for people. */
  readonly print: (answer: Answer, input: Input) => string;
  /** Whether an answer means failure: it is printed, and the exit code is 1. */
  readonly failed?: (answer: Answer) => boolean;
};

export function runsOnLedger<Flags, Input, Answer extends object>(
  command: Command,
  tools: CommandLineTools,
  { input, verb, print, create = false, step, failed = () => false }: LedgerCommand<Flags, Input, Answer>,
): Command {
  return withCommonFlags(command).action(async () => {
    const { data, json } = command.opts<CommonFlags>();
    const values = await input(command.opts() as Flags, command.args);
    await showingProgress(
      tools,
      { step: step ?? pathOf(command).replace("holdfast ", ""), json },
      async (progress) => {
        const { ctx, close } = orFail(await tools.open({ create, ...given({ data }) }, progress));
        try {
          const answer = orFail(await verb(ctx, values, progress));
          await progress.stop();
          tools.print(json ? JSON.stringify(answer) : print(answer, values));
          if (failed(answer)) throw new CommandFailure(null);
        } finally {
          await close();
        }
      },
    );
  });
}
