import type { Command } from "commander";
import type { Refusal } from "../../core/errors.ts";
import { displayAmount } from "../../core/money.ts";
import type { Mode } from "../../core/roles.ts";
import { MACHINE } from "../../services/admin/authority.ts";
import { listDeposits } from "../../services/admin/balances.ts";
import { assignTransfer, listUnassigned } from "../../services/admin/chain-deposits.ts";
import {
  addDepositSender,
  listDepositSenders,
  removeDepositSender,
} from "../../services/admin/deposit-senders.ts";
import { type Answer, examples, group, modeOption, runsOnLedger } from "../command.ts";
import { optionFailure } from "../failure.ts";
import { given, wholeNumberIfGiven } from "../input.ts";
import { report, table } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

export function addDeposits(program: Command, tools: CommandLineTools): void {
  const deposits = group(program, "deposits", "see what came in, and whose it is");
  addList(deposits, tools);
  addAssign(deposits, tools);
  const senders = group(deposits, "senders", "say whose deposits come from which addresses");
  addSendersAdd(senders, tools);
  addSendersRemove(senders, tools);
  addSendersList(senders, tools);
}

type ListFlags = {
  organisation?: string;
  mode: Mode;
  unassigned?: boolean;
  limit?: string;
  startingAfter?: string;
};

function addList(deposits: Command, tools: CommandLineTools): void {
  const list = deposits
    .command("list")
    .summary("list deposits, newest first")
    .description(
      "Lists what came in, newest first, with what each counts for: another amount than it was recorded with where it was corrected. With --unassigned it lists what came in to treasuries on chains and is nobody's deposit, since nobody has registered its sender.",
    )
    .option("--organisation <id>", "whose deposits they are; left out with --unassigned")
    .addOption(modeOption())
    .option("--unassigned", "transfers to a treasury that are nobody's deposits")
    .option("--limit <count>", "how many, 1 to 100 (default: 25)")
    .option("--starting-after <id>", "only those older than this one (default: from the newest on)");
  examples(
    list,
    "holdfast deposits list --organisation org_… --mode live",
    "holdfast deposits list --unassigned --mode live",
  );
  runsOnLedger(list, tools, {
    input: ({ organisation, mode, unassigned = false, limit, startingAfter }: ListFlags) => {
      if (unassigned !== (organisation === undefined))
        throw optionFailure("--organisation", "is missing: give it, or --unassigned instead");
      return {
        organisation,
        page: { mode, ...given({ limit: wholeNumberIfGiven(limit), starting_after: startingAfter }) },
      };
    },
    verb: (ctx, { organisation, page }): Promise<Listed | Refusal> =>
      organisation === undefined
        ? listUnassigned(ctx, page)
        : listDeposits(ctx, MACHINE, { organisation_id: organisation, ...page }),
    print: (answer, { page: { mode } }) => printList(answer, mode),
  });
}

type Listed = Answer<typeof listUnassigned> | Answer<typeof listDeposits>;

function printList({ data, next_cursor: next }: Listed, mode: Mode): string {
  if (data.length === 0) return `Nothing came in, ${mode}.`;
  const rows = table(
    ["recorded", "amount", "counts for", "reference", "id"],
    data.map((one) => [
      one.created_at,
      displayAmount(BigInt(one.amount), one.asset),
      one.object === "deposit"
        ? displayAmount(BigInt(one.counts_for), one.asset)
        : `nobody's, from ${one.counterparty}`,
      one.reference ?? "",
      one.object === "deposit" && one.transfer?.block === null
        ? `${one.id} (no longer on its chain)`
        : one.id,
    ]),
  );
  return next === null ? rows : `${rows}\n\n  Older ones: --starting-after ${next}`;
}

function addAssign(deposits: Command, tools: CommandLineTools): void {
  const assign = deposits
    .command("assign")
    .summary("say whose a transfer to a treasury is")
    .description(
      "Makes a deposit of a transfer to a treasury that is nobody's. Run again, it posts nothing twice. Ask whoever sent it: a deposit can be spent at once. After a restore, live money waits for `holdfast restore acknowledge`.",
    )
    .argument("<transfer>", "the transfer's id, as `holdfast deposits list --unassigned` shows it")
    .requiredOption("--organisation <id>", "whose deposit it is");
  examples(assign, "holdfast deposits assign trf_… --organisation org_…");
  runsOnLedger(assign, tools, {
    input: ({ organisation }: { organisation: string }, [transfer = ""]) => ({
      transfer_id: transfer,
      organisation_id: organisation,
    }),
    verb: assignTransfer,
    print: (deposit) =>
      report(`${displayAmount(BigInt(deposit.amount), deposit.asset)} came in, ${deposit.mode}.`, [
        ["id", deposit.id],
        ["organisation", deposit.organisation_id],
        ["reference", deposit.reference],
        ["recorded", deposit.created_at],
      ]),
  });
}

type SenderFlags = { organisation: string; mode: Mode; address: string; note?: string };

const fieldsOf = ({ organisation_id, mode, address, note, created_at }: Answer<typeof addDepositSender>) =>
  [
    ["address", address],
    ["organisation", organisation_id],
    ["mode", mode],
    ["note", note],
    ["registered", created_at],
  ] as const;

const senderInput = ({ organisation, mode, address, note }: SenderFlags) => ({
  ...{ organisation_id: organisation, mode, address },
  ...given({ note }),
});

function addSendersAdd(senders: Command, tools: CommandLineTools): void {
  const add = senders
    .command("add")
    .summary("register an address that sends deposits")
    .description(
      "Registers an address: what it sends to the treasury of the mode from now on is a deposit of the organisation. Whoever registers somebody else's address gets their money, so be sure whose it is; an exchange sends for many from one address. What came in before is assigned by `holdfast deposits assign`.",
    )
    .requiredOption("--organisation <id>", "whose deposits they are")
    .addOption(modeOption())
    .requiredOption("--address <address>", "0x and 40 hex digits")
    .option("--note <text>", "whose address it is, for yourself (default: none)");
  examples(
    add,
    "holdfast deposits senders add --organisation org_… --mode live --address 0x… --note Treasury",
  );
  runsOnLedger(add, tools, {
    input: senderInput,
    verb: addDepositSender,
    print: (sender) => report("The sender is registered.", fieldsOf(sender)),
  });
}

function addSendersRemove(senders: Command, tools: CommandLineTools): void {
  const remove = senders
    .command("remove")
    .summary("remove an address that sends deposits")
    .description(
      "Removes an address: what it sends from now on is nobody's deposit until it is assigned. What was credited stays.",
    )
    .requiredOption("--organisation <id>", "whose sender it is")
    .addOption(modeOption())
    .requiredOption("--address <address>", "0x and 40 hex digits");
  examples(remove, "holdfast deposits senders remove --organisation org_… --mode live --address 0x…");
  runsOnLedger(remove, tools, {
    input: senderInput,
    verb: removeDepositSender,
    print: (sender) => report("The sender is removed.", fieldsOf(sender)),
  });
}

function addSendersList(senders: Command, tools: CommandLineTools): void {
  const list = senders
    .command("list")
    .summary("list the addresses that send deposits")
    .description("Lists the addresses whose transfers to the treasury are an organisation's deposits.")
    .requiredOption("--organisation <id>", "whose senders they are")
    .addOption(modeOption())
    .option("--limit <count>", "how many, 1 to 1000 (default: 100)")
    .option("--starting-after <address>", "only those after this address (default: from the first one on)");
  examples(list, "holdfast deposits senders list --organisation org_… --mode live");
  type Flags = { organisation: string; mode: Mode; limit?: string; startingAfter?: string };
  runsOnLedger(list, tools, {
    input: ({ organisation, mode, limit, startingAfter }: Flags) => ({
      ...{ organisation_id: organisation, mode },
      ...given({ limit: wholeNumberIfGiven(limit), starting_after: startingAfter }),
    }),
    verb: listDepositSenders,
    print: ({ data, next_cursor: next }, { mode }) => {
      if (data.length === 0) return `No address is registered, ${mode}.`;
      const rows = table(
        ["address", "note", "registered"],
        data.map(({ address, note, created_at: at }) => [address, note ?? "", at]),
      );
      return next === null ? rows : `${rows}\n\n  More: --starting-after ${next}`;
    },
  });
}
