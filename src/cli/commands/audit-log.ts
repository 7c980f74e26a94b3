import type { Command } from "commander";
import { showAuditLog } from "../../services/admin/audit-log.ts";
import { MACHINE } from "../../services/admin/authority.ts";
import { examples, runsOnLedger } from "../command.ts";
import { given, wholeNumberIfGiven } from "../input.ts";
import { table } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

export function addAuditLog(program: Command, tools: CommandLineTools): void {
  const log = program
    .command("audit-log")
    .summary("show who changed what, newest first")
    .description(
      "Shows every administrative act on an organisation, newest first: who, what and when. With --json also how it was before and is after.",
    )
    .requiredOption("--organisation <id>", "whose log it is")
    .option("--limit <count>", "1 to 100 entries (default: 25)")
    .option("--starting-after <entry>", "continue after this entry, towards older ones");
  examples(log, "holdfast audit-log --organisation org_… --limit 100 --json | jq .data");
  type Flags = { organisation: string; limit?: string; startingAfter?: string };
  runsOnLedger(log, tools, {
    input: (flags: Flags) => ({
      organisation_id: flags.organisation,
      ...given({ limit: wholeNumberIfGiven(flags.limit), starting_after: flags.startingAfter }),
    }),
    verb: (ctx, input) => showAuditLog(ctx, MACHINE, input),
    tell: ({ data, next_cursor: next }) => {
      const entries = table(
        ["when", "who", "what", "which"],
        data.map((entry) => [
          entry.recorded_at,
          entry.actor.id ?? "the machine",
          entry.action,
          entry.subject,
        ]),
      );
      return next === null ? entries : `${entries}\n\n  Older ones: --starting-after ${next}`;
    },
  });
}
