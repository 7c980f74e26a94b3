import type { Command } from "commander";
import { NO_PROGRESS } from "../../core/progress.ts";
import type { CopyResource } from "../../services/admin/copy.ts";
import { type CommonFlags, examples, withCommonFlags } from "../command.ts";
import { orFail } from "../failure.ts";
import { given } from "../input.ts";
import { report } from "../output.ts";
import type { CommandLineTools, CopyFlags } from "../tools.ts";

export function addCopy(program: Command, tools: CommandLineTools): void {
  const copy = program
    .command("copy")
    .summary("copy the ledger between a data folder and PostgreSQL")
    .description(
      "Copies the whole ledger from a data folder into an empty database of PostgreSQL, or from there into an empty or missing data folder: every row, with its position and its hashes. The source is audited before, and the copy after it. No server may run on either. Whatever ends the copy early, nothing of it is left that a server could serve. Key files are not copied. Both sides have the same ledger then: serve only one of them.",
    )
    .option(
      "--from <ledger>",
      "the source: a data folder, or a database, as postgres://… (default: the database of HOLDFAST_DATABASE; for a database as the target, the data folder)",
    )
    .option(
      "--to <ledger>",
      "the target, the other of the two (default: the database of HOLDFAST_DATABASE; for a database as the source, the data folder)",
    );
  examples(
    copy,
    "holdfast copy --from ./data --to postgres://holdfast@db.example/holdfast",
    "HOLDFAST_DATABASE_FILE=/run/secrets/database holdfast copy --from ./data",
    "HOLDFAST_DATABASE_FILE=/run/secrets/database holdfast copy --to ./data",
  );
  withCommonFlags(copy).action(async () => {
    const { json = false, data, from, to } = copy.opts<CommonFlags & CopyFlags>();
    const start = json ? () => NO_PROGRESS : tools.startProgress;
    const made = orFail(await tools.copy(given({ data, from, to }), start));
    tools.print(json ? JSON.stringify(made) : inWords(made));
  });
}

const inWords = ({ from, to, instance_id: of, rows, replaced }: CopyResource): string =>
  report(
    "The ledger is copied, and the audit of the copy found nothing wrong.",
    [
      ["from", from],
      ["to", to],
      ["of", of],
      ["rows", rows],
    ],
    [
      ...replaced.map(
        ({ table, column, texts }) =>
          `${texts} of the texts in ${table}.${column} had a U+0000, which PostgreSQL cannot keep. There is U+FFFD in its place.`,
      ),
      "The key files are not copied. Both sides have the same ledger now: serve only one of them, or money is spent twice.",
    ].join("\n"),
  );
