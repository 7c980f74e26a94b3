import type { Command } from "commander";
import { printable } from "../../core/hidden-characters.ts";
import { examples, runsOnLedger } from "../command.ts";
import type { CommandLineTools } from "../tools.ts";

export function addAudit(program: Command, tools: CommandLineTools): void {
  const audit = program
    .command("audit")
    .summary("check that the ledger agrees with itself")
    .description(
      "Checks that every posting sums to zero, that balances and states agree with what is held, and that no trace was changed. Lists every disagreement, and exits with 1 where there is one.",
    );
  examples(audit, "holdfast audit --data ./data");
  runsOnLedger(audit, tools, {
    input: () => ({}),
    async verb({ store }) {
      const problems = await store.audit();
      return { object: "audit", ok: problems.length === 0, problems };
    },
    step: "checking the ledger",
    print: ({ ok, problems }) =>
      ok ? "The ledger balances; nothing disagrees." : problems.map(printable).join("\n"),
    failed: ({ ok }) => !ok,
  });
}
