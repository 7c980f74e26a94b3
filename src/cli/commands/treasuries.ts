import type { Command } from "commander";
import { displayAmount } from "../../core/money.ts";
import { MACHINE } from "../../services/admin/authority.ts";
import { listTreasuries } from "../../services/admin/treasuries.ts";
import { type Answer, examples, group, runsOnLedger } from "../command.ts";
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
            ["mode", "asset", "chain", "token", "address", "one payout", "in 24 hours", "deposits"],
            data.map(({ mode, asset, chain, token, address, payout_max: payout, day_max: day, ...state }) => [
              ...[mode, asset, chain, token, address],
              ...[displayAmount(BigInt(payout), asset), displayAmount(BigInt(day), asset)],
              depositsWords(state),
            ]),
          ),
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
