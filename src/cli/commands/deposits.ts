import type { Command } from "commander";
import { displayAmount } from "../../core/money.ts";
import type { Mode } from "../../core/roles.ts";
import { MACHINE } from "../../services/admin/authority.ts";
import { listDeposits } from "../../services/admin/balances.ts";
import { examples, group, modeOption, runsOnLedger } from "../command.ts";
import { given, wholeNumberIfGiven } from "../input.ts";
import { table } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

export function addDeposits(program: Command, tools: CommandLineTools): void {
  const deposits = group(program, "deposits", "see what came in");
  const list = deposits
    .command("list")
    .summary("list deposits, newest first")
    .description(
      "Lists what came in, newest first, with what each counts for: another amount than it was recorded with where it was corrected.",
    )
    .requiredOption("--organisation <id>", "whose deposits they are")
    .addOption(modeOption())
    .option("--limit <count>", "how many, 1 to 100 (default: 25)")
    .option("--starting-after <id>", "only deposits older than this one (default: from the newest on)");
  examples(list, "holdfast deposits list --organisation org_… --mode live");
  type Flags = { organisation: string; mode: Mode; limit?: string; startingAfter?: string };
  runsOnLedger(list, tools, {
    input: (flags: Flags) => ({
      organisation_id: flags.organisation,
      mode: flags.mode,
      ...given({ limit: wholeNumberIfGiven(flags.limit), starting_after: flags.startingAfter }),
    }),
    verb: (ctx, input) => listDeposits(ctx, MACHINE, input),
    print: ({ data, next_cursor: next }, { mode }) => {
      if (data.length === 0) return `Nothing has come in yet, ${mode}.`;
      const rows = table(
        ["recorded", "amount", "counts for", "reference", "id"],
        data.map(({ created_at: at, amount, counts_for: counts, asset, reference, id }) => [
          at,
          displayAmount(BigInt(amount), asset),
          displayAmount(BigInt(counts), asset),
          reference ?? "",
          id,
        ]),
      );
      return next === null ? rows : `${rows}\n\n  Older ones: --starting-after ${next}`;
    },
  });
}
