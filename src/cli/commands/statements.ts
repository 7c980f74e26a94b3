import { type Command, Option } from "commander";
import { isRefusal } from "../../core/errors.ts";
import { displayAmount } from "../../core/money.ts";
import type { Mode } from "../../core/roles.ts";
import { MACHINE } from "../../services/admin/authority.ts";
import {
  STATEMENT_FORMATS,
  type StatementFormat,
  type StatementInput,
  statementHead,
  statementOf,
  statementText,
} from "../../services/admin/statements.ts";
import { examples, group, modeOption, runsOnLedger } from "../command.ts";
import { given } from "../input.ts";
import { writeNewFile } from "../new-file.ts";
import { table } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

export function addStatements(program: Command, tools: CommandLineTools): void {
  const statements = group(program, "statements", "take what moved with you");
  const exported = statements
    .command("export")
    .summary("write every posting of a period into a file")
    .description(
      "Writes every posting of an organisation and mode in a period into a new file, asset by asset: what caused it, by how much each balance changed, and the balances after it, in the smallest unit. In CSV, a text that a spreadsheet would take for a formula begins with an apostrophe.",
    )
    .argument("<file>", "the file to write; it must not exist")
    .requiredOption("--organisation <id>", "whose money it is")
    .addOption(modeOption())
    .option(
      "--from <time>",
      "the first moment of the period, such as 2026-11-01T00:00:00Z (default: the beginning)",
    )
    .option("--to <time>", "the moment at which it ends, which is not in it (default: now)")
    .option("--asset <asset>", "only this asset (default: all of them)")
    .addOption(
      new Option(
        "--format <format>",
        "the form of the file: lines of CSV, or of JSON (default: csv)",
      ).choices(STATEMENT_FORMATS),
    );
  examples(
    exported,
    "holdfast statements export november.csv --organisation org_… --mode live --from 2026-11-01T00:00:00Z --to 2026-12-01T00:00:00Z",
  );
  type Flags = {
    organisation: string;
    mode: Mode;
    from?: string;
    to?: string;
    asset?: string;
    format?: StatementFormat;
  };
  runsOnLedger(exported, tools, {
    input: ({ organisation, mode, from, to, asset, format = "csv" }: Flags, [file = ""]) => {
      const asked: StatementInput = { organisation_id: organisation, mode, ...given({ from, to, asset }) };
      return { file, format, asked };
    },
    verb: async (ctx, { file, format, asked }, progress) => {
      const pages = await statementOf(ctx, MACHINE, asked);
      if (isRefusal(pages)) return pages;
      return writeNewFile(file, async (append) => {
        append(statementHead(format));
        let rows = 0;
        const closing = new Map<string, { asset: string; available: string; held: string; paid: string }>();
        for await (const page of pages) {
          append(statementText(page, format));
          rows += page.length;
          progress.update(rows, null);
          const last = page.at(-1);
          if (last)
            closing.set(last.asset, {
              asset: last.asset,
              available: last.available_after,
              held: last.held_after,
              paid: last.paid_after,
            });
        }
        return { object: "export" as const, file, rows, balances: [...closing.values()] };
      });
    },
    step: "writing the statement",
    print: ({ file, rows, balances }) =>
      [
        `${rows} postings written to ${file}.`,
        ...(balances.length === 0
          ? []
          : [
              "",
              table(
                ["at the end", "available", "held", "paid"],
                balances.map(({ asset, available, held, paid }) => [
                  asset,
                  ...[available, held, paid].map((amount) => displayAmount(BigInt(amount), asset)),
                ]),
              ),
            ]),
      ].join("\n"),
  });
}
