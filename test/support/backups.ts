import { backUpFolder, restoreFolder } from "../../src/app/backups.ts";
import { openForCommands } from "../../src/app/ledger.ts";
import { NO_SECRETS, readConfig, type Secrets } from "../../src/config.ts";
import { type CommandLine, createCommandLine } from "./command-line.ts";
import type { TestContext } from "./context.ts";
import { must } from "./organisations.ts";

export const configOf = (data = "missing") => must(readConfig({ DATA: data, PORT: "0" }, {}));

/**
 * The command line of a machine, with `backup` and `restore`.
 *
 * @param usual the data folder that the machine's environment names
 */
export const commandsOn = (
  context: TestContext,
  usual = "missing",
  given: Partial<Secrets> = {},
): CommandLine => {
  const secrets = { ...NO_SECRETS, ...given };
  return createCommandLine(context, {
    backUp: async ({ data, ...input }) =>
      backUpFolder(configOf(data), secrets, await openForCommands(configOf(data)), input),
    restore: async ({ data, ...input }) => restoreFolder(configOf(data), secrets, usual, input),
  });
};
