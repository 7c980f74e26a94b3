import type { Command } from "commander";
import { displayAmount } from "../../core/money.ts";
import type { Mode } from "../../core/roles.ts";
import { MACHINE } from "../../services/admin/authority.ts";
import { fundBalance, showBalances } from "../../services/admin/balances.ts";
import { type CommonFlags, examples, group, modeOption, runsOnLedger, withCommonFlags } from "../command.ts";
import { CommandFailure, orFail } from "../failure.ts";
import { given } from "../input.ts";
import { report, table } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

export function addBalances(program: Command, tools: CommandLineTools): void {
  const balances = group(program, "balances", "record money that came in, and see what there is");
  const fund = balances
    .command("fund")
    .summary("record a deposit")
    .description("Records money that came in: it is available to be held from then on.")
    .requiredOption("--organisation <id>", "whose money it is")
    .addOption(modeOption())
    .requiredOption("--amount <amount>", "in the asset's smallest unit; 1000000 is 1.00 USDC")
    .option("--asset <asset>", "what came in (default: USDC)")
    .option("--reference <text>", "how it came in, in your words");
  examples(fund, "holdfast balances fund --organisation org_… --mode sandbox --amount 1000000000");
  type FundFlags = {
    organisation: string;
    mode: Mode;
    amount: string;
    asset?: string;
    reference?: string;
  };
  runsOnLedger(fund, tools, {
    input: ({ organisation, mode, amount, asset, reference }: FundFlags) => ({
      organisation_id: organisation,
      mode,
      amount,
      ...given({ asset, reference }),
    }),
    verb: (ctx, input) => fundBalance(ctx, MACHINE, input),
    tell: (deposit) =>
      report(`${displayAmount(BigInt(deposit.amount), deposit.asset)} came in, ${deposit.mode}.`, [
        ["id", deposit.id],
        ["amount", deposit.amount],
        ["reference", deposit.reference],
        ["recorded", deposit.created_at],
      ]),
  });

  const show = balances
    .command("show")
    .summary("show what is available, held and paid")
    .description("Shows an organisation's balances in one mode: what is available, held, and paid to payees.")
    .requiredOption("--organisation <id>", "whose money it is")
    .addOption(modeOption());
  runsOnLedger(show, tools, {
    input: (flags: { organisation: string; mode: Mode }) => ({
      organisation_id: flags.organisation,
      mode: flags.mode,
    }),
    verb: (ctx, input) => showBalances(ctx, MACHINE, input),
    tell: ({ mode, balances: rows }) =>
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

export function addAudit(program: Command, tools: CommandLineTools): void {
  const audit = program
    .command("audit")
    .summary("check that the books balance and the records agree")
    .description(
      "Checks that the books balance, that states agree with holds, and that the trace is intact. Lists what is not, and exits 1 then.",
    );
  withCommonFlags(audit).action(async () => {
    const { data, json } = audit.opts<CommonFlags>();
    const { ctx, close } = orFail(await tools.open({ create: false, ...given({ data }) }));
    try {
      const problems = await ctx.store.audit();
      const ok = problems.length === 0;
      if (json) tools.print(JSON.stringify({ object: "audit", ok, problems }));
      else tools.print(ok ? "The books balance; nothing disagrees." : problems.join("\n"));
      if (!ok) throw new CommandFailure(null);
    } finally {
      await close();
    }
  });
}
