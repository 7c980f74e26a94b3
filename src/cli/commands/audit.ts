import type { Command } from "commander";
import { isRefusal } from "../../core/errors.ts";
import { printable } from "../../core/hidden-characters.ts";
import { auditInstance } from "../../services/audit.ts";
import { RECEIPTS } from "../../services/warrants/audit-receipts.ts";
import { auditByWitness } from "../../services/witness/audit.ts";
import { examples, runsOnLedger } from "../command.ts";
import { optionFailure } from "../failure.ts";
import { wholeNumberIfGiven } from "../input.ts";
import type { CommandLineTools } from "../tools.ts";

export function addAudit(program: Command, tools: CommandLineTools): void {
  const audit = program
    .command("audit")
    .summary("check that the ledger agrees with itself")
    .description(
      "Checks that every posting sums to zero, that balances and states agree with what is held, that no trace was changed, that the log is the traces', that its checkpoints are signed, that what was sent to a chain is these checkpoints (no chain is asked), and that receipts verify. Lists every disagreement, and exits with 1 where there is one.",
    )
    .option(
      "--witness <witness>",
      "also compare the log with what this witness of HOLDFAST_WITNESSES, by its name or its URL, has signed of it",
    )
    .option(
      "--receipts <count>",
      `how many receipts of settled warrants are made and verified, spread over all of them, or all; each takes about a millisecond (default: ${RECEIPTS})`,
    );
  examples(
    audit,
    "holdfast audit --data ./data",
    "holdfast audit --receipts all",
    "holdfast audit --witness https://other.example/.well-known/holdfast/witness",
  );
  runsOnLedger(audit, tools, {
    input: ({ witness, receipts }: { witness?: string; receipts?: string }) => ({
      witness,
      receipts: receiptsOf(receipts),
    }),
    async verb(ctx, { witness: named, receipts }, progress) {
      const witness = named === undefined ? null : await auditByWitness(ctx, named);
      if (isRefusal(witness)) return witness;
      const problems = await auditInstance(ctx, receipts, progress.update);
      const all = witness?.problem ? [...problems, witness.problem] : problems;
      return { object: "audit", ok: all.length === 0, problems: all, ...(witness && { witness }) } as const;
    },
    step: "checking the ledger",
    print({ ok, problems, witness }) {
      if (!ok) return problems.map(printable).join("\n");
      const agrees =
        witness && ` The witness ${witness.witness} has signed the log at ${witness.size} leaves.`;
      return `The ledger balances; nothing disagrees.${printable(agrees ?? "")}`;
    },
    failed: ({ ok }) => !ok,
  });
}

function receiptsOf(text: string | undefined): number {
  if (text === "all") return Number.MAX_SAFE_INTEGER;
  const count = wholeNumberIfGiven(text) ?? RECEIPTS;
  if (Number.isNaN(count)) throw optionFailure("--receipts", "must be a whole number, or all");
  return count;
}
