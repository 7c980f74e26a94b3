import type { Command } from "commander";
import { displayAmount } from "../../core/money.ts";
import type { Mode } from "../../core/roles.ts";
import { MACHINE } from "../../services/admin/authority.ts";
import { listTreasuries, resumeTreasury } from "../../services/admin/treasuries.ts";
import { type Answer, examples, group, modeOption, runsOnLedger } from "../command.ts";
import { given, wholeNumberIfGiven } from "../input.ts";
import { table } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

export function addTreasuries(program: Command, tools: CommandLineTools): void {
  const treasuries = group(program, "treasuries", "see the wallets that hold money on chains");
  const list = treasuries
    .command("list")
    .summary("list the wallets and their tokens")
    .description(
      "Lists the wallets that hold money on chains, and which token stands for which asset, as HOLDFAST_TREASURY_SANDBOX and HOLDFAST_TREASURY_LIVE have them. Deposits are sent to these addresses, and payouts are sent from them. Each address also needs the chain's coin, for gas. It also says up to which block deposits were looked for, and why none are credited where something is wrong.",
    );
  examples(list, "holdfast treasuries list");
  runsOnLedger(list, tools, {
    input: () => ({}),
    verb: (ctx) => listTreasuries(ctx, MACHINE),
    print: ({ data }) =>
      data.length === 0
        ? "No wallet holds money on a chain: people pay in and out by their own means."
        : table(
            [
              "mode",
              "asset",
              "chain",
              "token",
              "address",
              "one payout",
              "in 24 hours",
              "deposits",
              "payouts",
            ],
            data.map(({ mode, asset, chain, token, address, payout_max: payout, day_max: day, ...state }) => [
              ...[mode, asset, chain, token, address],
              ...[displayAmount(BigInt(payout), asset), displayAmount(BigInt(day), asset)],
              ...[depositsWords(state), state.waits_for?.message ?? ""],
            ]),
          ),
  });
  addResume(treasuries, tools);
}

function addResume(treasuries: Command, tools: CommandLineTools): void {
  const resume = treasuries
    .command("resume")
    .summary("let payouts that have stopped go on")
    .description(
      "Lets payouts of a token go on that have stopped until a person looked: where the chain has transactions of the wallet that the ledger does not know, or did something else than was asked. Compare first: record each payment that the ledger has forgotten with payouts submit, where `--rail` is `book`, and payouts mark-paid.",
    )
    .addOption(modeOption())
    .option("--asset <asset>", "the asset that the token stands for (default: USDC)", "USDC")
    .option(
      "--nonce <number>",
      "the wallet's next nonce, as treasuries list --json shows it: you have compared all below it",
    );
  examples(resume, "holdfast treasuries resume --mode live --asset USDC --nonce 17");
  type Flags = { mode: Mode; asset: string; nonce?: string };
  runsOnLedger(resume, tools, {
    input: ({ mode, asset, nonce }: Flags) => ({
      mode,
      asset,
      ...given({ nonce: wholeNumberIfGiven(nonce) }),
    }),
    verb: (ctx, input) => resumeTreasury(ctx, MACHINE, input),
    print: ({ mode, asset, waits_for: waits }) =>
      waits === null
        ? `Payouts of ${asset} go on, ${mode}.`
        : `Payouts of ${asset}, ${mode}: ${waits.message}.`,
  });
}

type State = Pick<Answer<typeof listTreasuries>["data"][number], "block" | "stopped" | "unassigned" | "gone">;

function depositsWords({ block, stopped, unassigned, gone }: State): string {
  if (block === null) return "not looked at yet";
  return [
    `looked at up to block ${block}`,
    ...(stopped === null ? [] : [`stopped: ${stopped}`]),
    ...(unassigned === 0 ? [] : [`${unassigned} unassigned`]),
    ...(gone === 0 ? [] : [`${gone} no longer on the chain`]),
  ].join(", ");
}
