import { type Command, Option } from "commander";
import type { Refusal } from "../core/errors.ts";
import { MODES } from "../core/roles.ts";
import type { Context } from "../services/context.ts";
import { orFail } from "./failure.ts";
import { given } from "./input.ts";
import type { CommandLineTools } from "./tools.ts";

/** What every command takes. */
export type CommonFlags = { readonly data?: string; readonly json?: boolean };

const withData = (command: Command): Command =>
  command.option("--data <folder>", "data folder (default: HOLDFAST_DATA, else ./data)");

export const withCommonFlags = (command: Command): Command =>
  withData(command).option("--json", "print exactly one JSON object");

/** Which of the two worlds. */
export const modeOption = (): Option =>
  new Option("--mode <mode>", "sandbox, where no money is real, or live")
    .choices([...MODES])
    .makeOptionMandatory();

/** A noun's commands, such as `agents`. */
export const group = (program: Command, name: string, summary: string): Command =>
  program
    .command(name)
    .summary(summary)
    .description(`${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`)
    .helpCommand(false);

export const examples = (command: Command, ...lines: readonly string[]): Command =>
  command.addHelpText("after", ["", "Examples:", ...lines.map((line) => `  $ ${line}`)].join("\n"));

/** A command that runs one verb on the ledger of a data folder. */
type LedgerCommand<Flags, Input, Answer extends object> = {
  /** From flags and arguments to the verb's input. Runs before the ledger is opened. */
  readonly input: (flags: Flags, args: readonly string[]) => Input | Promise<Input>;
  readonly verb: (ctx: Context, input: Input) => Promise<Answer | Refusal>;
  /** Whether the ledger is made where there is none yet: a mistyped folder is refused otherwise. */
  readonly create?: boolean;
  /** The answer for people. */
  readonly tell: (answer: Answer, input: Input) => string;
};

export function runsOnLedger<Flags, Input, Answer extends object>(
  command: Command,
  tools: CommandLineTools,
  { input, verb, tell, create = false }: LedgerCommand<Flags, Input, Answer>,
): Command {
  return withCommonFlags(command).action(async () => {
    const { data, json } = command.opts<CommonFlags>();
    const values = await input(command.opts() as Flags, command.args);
    const { ctx, close } = orFail(await tools.open({ create, ...given({ data }) }));
    try {
      const answer = orFail(await verb(ctx, values));
      tools.print(json ? JSON.stringify(answer) : tell(answer, values));
    } finally {
      await close();
    }
  });
}
