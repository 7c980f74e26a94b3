import type { Command } from "commander";
import type { AuditLog } from "../../resources/audit-log.ts";
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
      "Shows every administrative change to an organisation, newest first: who, what and when. With --json also how it was before and after.",
    )
    .requiredOption("--organisation <id>", "whose log it is")
    .option("--limit <count>", "how many entries, 1 to 100 (default: 25)")
    .option("--starting-after <entry>", "only entries older than this one (default: from the newest on)");
  examples(log, "holdfast audit-log --organisation org_… --limit 100 --json | jq .data");
  type Flags = { organisation: string; limit?: string; startingAfter?: string };
  runsOnLedger(log, tools, {
    input: (flags: Flags) => ({
      organisation_id: flags.organisation,
      ...given({ limit: wholeNumberIfGiven(flags.limit), starting_after: flags.startingAfter }),
    }),
    verb: (ctx, input) => showAuditLog(ctx, MACHINE, input),
    print: ({ data, next_cursor: next }) => {
      const entries = table(
        ["when", "who", "what", "which"],
        data.map((entry) => [entry.recorded_at, whoOf(entry.actor), entry.action, entry.subject]),
      );
      return next === null ? entries : `${entries}\n\n  Older ones: --starting-after ${next}`;
    },
  });
}

const whoOf = ({ kind, id }: AuditLog["data"][number]["actor"]): string => {
  if (id === null) return "the machine";
  return kind === "stranger" ? `a stranger at ${id}` : id;
};
