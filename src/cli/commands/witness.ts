import type { Command } from "commander";
import { showWitness } from "../../services/witness/show.ts";
import { examples, group, runsOnLedger } from "../command.ts";
import { report, table } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

export function addWitness(program: Command, tools: CommandLineTools): void {
  const witness = group(program, "witness", "what others need to witness this log, or to be witnessed");
  addShow(witness, tools);
}

function addShow(witness: Command, tools: CommandLineTools): void {
  const show = witness
    .command("show")
    .summary("show the keys to give to others, and the logs that were witnessed")
    .description(
      "Shows what to give to others: to be witnessed by this instance they put its key and URL into HOLDFAST_WITNESSES, and to witness this log they put its key into HOLDFAST_WITNESS_FOR. Lists how far each log was witnessed here.",
    );
  examples(show, "holdfast witness show");
  runsOnLedger(show, tools, {
    input: () => ({}),
    verb: showWitness,
    print({ witness, log, witnessed }) {
      const keys = report("Others need these of this instance.", [
        ["as HOLDFAST_WITNESSES", witness],
        ...log.map((key) => ["as HOLDFAST_WITNESS_FOR", key] as const),
      ]);
      const rows = witnessed.map(({ origin, size, cosigned_at }) => [origin, String(size), cosigned_at]);
      return witnessed.length === 0
        ? `${keys}\n\nNo log was witnessed here.`
        : `${keys}\n\n${table(["WITNESSED LOG", "SIZE", "COSIGNED"], rows)}`;
    },
  });
}
