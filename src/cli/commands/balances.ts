import type { Command } from "commander";
import { displayAmount } from "../../core/money.ts";
import type { Mode } from "../../core/roles.ts";
import { MACHINE } from "../../services/admin/authority.ts";
import { fundBalance, showBalances } from "../../services/admin/balances.ts";
import { correctBalance } from "../../services/admin/corrections.ts";
import { examples, group, modeOption, runsOnLedger } from "../command.ts";
import { given } from "../input.ts";
import { report, table } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

export function addBalances(program: Command, tools: CommandLineTools): void {
  const balances = group(program, "balances", "record money that came in, see what there is, and correct it");
  addFund(balances, tools);
  addShow(balances, tools);
  addCorrect(balances, tools);
}

function addFund(balances: Command, tools: CommandLineTools): void {
  const fund = balances
    .command("fund")
    .summary("record a deposit")
    .description(
      "Records money that came in: it is available to be held from then on. After a restore, live money waits for `holdfast restore acknowledge`.",
    )
    .requiredOption("--organisation <id>", "whose money it is")
    .addOption(modeOption())
    .requiredOption("--amount <amount>", "in the asset's smallest unit; 1000000 is 1.00 USDC")
    .option("--asset <asset>", "what came in (default: USDC)")
    .option(
      "--reference <text>",
      "what the deposit is called elsewhere, such as by the bank; recorded twice, it is posted once (default: none)",
    );
  examples(fund, "holdfast balances fund --organisation org_… --mode sandbox --amount 1000000000");
  type Flags = {
    organisation: string;
    mode: Mode;
    amount: string;
    asset?: string;
    reference?: string;
  };
  runsOnLedger(fund, tools, {
    input: ({ organisation, mode, amount, asset, reference }: Flags) => ({
      organisation_id: organisation,
      mode,
      amount,
      ...given({ asset, reference }),
    }),
    verb: (ctx, input) => fundBalance(ctx, MACHINE, input),
    print: (deposit) =>
      report(`${displayAmount(BigInt(deposit.amount), deposit.asset)} came in, ${deposit.mode}.`, [
        ["id", deposit.id],
        ["amount", deposit.amount],
        ["reference", deposit.reference],
        ["recorded", deposit.created_at],
      ]),
  });
}

function addShow(balances: Command, tools: CommandLineTools): void {
  const show = balances
    .command("show")
    .summary("show what is available, held and paid")
    .description("Shows an organisation's balances in one mode: what is available, held, and paid to payees.")
    .requiredOption("--organisation <id>", "whose money it is")
    .addOption(modeOption());
  examples(show, "holdfast balances show --organisation org_… --mode live");
  runsOnLedger(show, tools, {
    input: (flags: { organisation: string; mode: Mode }) => ({
      organisation_id: flags.organisation,
      mode: flags.mode,
    }),
    verb: (ctx, input) => showBalances(ctx, MACHINE, input),
    print: ({ mode, balances: rows }) =>
      rows.length === 0
        ? `Nothing has come in yet, ${mode}.`
        : table(
            [mode, "available", "held", "paid"],
            rows.map(({ asset, available, held, paid }) => [
              asset,
              ...[available, held, paid].map((amount) => displayAmount(BigInt(amount), asset)),
            ]),
          ),
  });
}

function addCorrect(balances: Command, tools: CommandLineTools): void {
  const correct = balances
    .command("correct")
    .summary("say what a deposit really brought")
    .description(
      "Records what a deposit really brought, and posts the difference; 0 takes all of it back. Nothing that is held or paid is taken back. Above the passkey threshold it waits until an admin approves it in the console with a passkey. Run again, it posts nothing twice.",
    )
    .argument("<deposit>", "the deposit's id")
    .requiredOption("--amount <amount>", "what it really brought, in the asset's smallest unit")
    .requiredOption("--reason <text>", "why it is corrected");
  examples(correct, "holdfast balances correct dep_… --amount 90000000 --reason 'a digit too many'");
  runsOnLedger(correct, tools, {
    input: ({ amount, reason }: { amount: string; reason: string }, [deposit = ""]) => ({
      deposit_id: deposit,
      amount,
      reason,
    }),
    verb: (ctx, input) => correctBalance(ctx, MACHINE, input),
    print: (correction) =>
      report(
        correction.status === "recorded"
          ? "The deposit is corrected."
          : "The correction waits: an admin approves it in the console, under Money.",
        [
          ["id", correction.id],
          ["deposit", correction.deposit_id],
          ["counted for", correction.amount_before],
          ["counts for", correction.amount_after],
          ["reason", correction.reason],
        ],
      ),
  });
}
