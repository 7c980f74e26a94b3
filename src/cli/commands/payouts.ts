import { type Command, Option } from "commander";
import { csvLine } from "../../core/csv.ts";
import { isRefusal } from "../../core/errors.ts";
import { displayAmount } from "../../core/money.ts";
import { PAYOUT_STATUSES, type PayoutStatus, RAILS } from "../../core/payout.ts";
import type { Mode } from "../../core/roles.ts";
import type { PayoutResource } from "../../resources/payout.ts";
import { MACHINE } from "../../services/admin/authority.ts";
import {
  failPayoutOf,
  listPayouts,
  markPaid,
  pagesOfPayouts,
  submitPayouts,
} from "../../services/admin/payouts.ts";
import { examples, group, modeOption, runsOnLedger } from "../command.ts";
import { given, wholeNumberIfGiven } from "../input.ts";
import { writeNewFile } from "../new-file.ts";
import { report, table } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

export function addPayouts(program: Command, tools: CommandLineTools): void {
  const payouts = group(program, "payouts", "see what is owed to payees, and record that it is paid out");
  addList(payouts, tools);
  addSubmit(payouts, tools);
  addMarkPaid(payouts, tools);
  addFail(payouts, tools);
  addExport(payouts, tools);
}

type ScopeFlags = { readonly organisation: string; readonly mode: Mode };
const inScope = ({ organisation, mode }: ScopeFlags) => ({ organisation_id: organisation, mode });

const statusOption = (): Option =>
  new Option("--status <status>", "which payouts; `owed` is what no payout has yet (default: owed)").choices(
    PAYOUT_STATUSES,
  );

const sentenceOf = ({ message, until }: NonNullable<PayoutResource["waits_for"]>): string =>
  until === null ? message : `${message}, until ${until}`;

const rowsOf = (payouts: readonly PayoutResource[]): string =>
  table(
    ["payee", "amount", "status", "rail", "reference or reason", "id"],
    payouts.map(({ payee, amount, asset, status, rail, reference, reason, waits_for: waits, id }) => [
      payee,
      displayAmount(BigInt(amount), asset),
      status,
      rail,
      waits === null ? (reason ?? reference ?? "") : sentenceOf(waits),
      id ?? "",
    ]),
  );

function addList(payouts: Command, tools: CommandLineTools): void {
  const list = payouts
    .command("list")
    .summary("list what is owed, or payouts of a status")
    .description(
      "Lists what is owed to each payee, or the payouts of a status, newest first. What is owed is what was released and is in no payout. The rail says how it is paid: `book`, by your own means; `evm`, by the treasury on its chain. What is not paid yet says what it waits for.",
    )
    .requiredOption("--organisation <id>", "whose payees they are")
    .addOption(modeOption())
    .addOption(statusOption())
    .option("--limit <count>", "how many, 1 to 1000 (default: 100)")
    .option("--starting-after <id>", "the next_cursor of the page before (default: from the first one on)");
  examples(list, "holdfast payouts list --organisation org_… --mode live --status submitted");
  type Flags = ScopeFlags & { status?: PayoutStatus; limit?: string; startingAfter?: string };
  runsOnLedger(list, tools, {
    input: (flags: Flags) => ({
      ...inScope(flags),
      ...given({
        status: flags.status,
        limit: wholeNumberIfGiven(flags.limit),
        starting_after: flags.startingAfter,
      }),
    }),
    verb: (ctx, input) => listPayouts(ctx, MACHINE, input),
    print: ({ data, next_cursor: next }, { status = "owed", mode }) => {
      if (data.length === 0)
        return status === "owed" ? `Nothing is owed, ${mode}.` : `No payout is ${status}, ${mode}.`;
      return next === null ? rowsOf(data) : `${rowsOf(data)}\n\n  More: --starting-after ${next}`;
    },
  });
}

function addSubmit(payouts: Command, tools: CommandLineTools): void {
  const submit = payouts
    .command("submit")
    .summary("begin payouts of what is owed")
    .description(
      "Begins a payout of all that is owed to each payee, or to one. Its amount is fixed from then on: pay it by your own means, and mark it. What the treasury sends is left out: it goes by itself within the limits, and above them once an admin releases it in the console with a passkey. A second run submits nothing twice. One run submits 1,000 at most, all of them or none.",
    )
    .requiredOption("--organisation <id>", "whose payees they are")
    .addOption(modeOption())
    .option("--payee <payee>", "only this payee (default: every payee that is owed something)")
    .option("--asset <asset>", "what is owed to that payee (default: USDC)")
    .addOption(
      new Option(
        "--rail <rail>",
        "`book` to pay by your own means what the treasury would send, too (default: without that)",
      ).choices(RAILS.slice(0, 1)),
    );
  examples(submit, "holdfast payouts submit --organisation org_… --mode live");
  type Flags = ScopeFlags & { payee?: string; asset?: string; rail?: "book" };
  runsOnLedger(submit, tools, {
    input: (flags: Flags) => ({
      ...inScope(flags),
      ...given({ payee: flags.payee, asset: flags.asset, rail: flags.rail }),
    }),
    verb: (ctx, input) => submitPayouts(ctx, MACHINE, input),
    print: ({ data, has_more: hasMore }, { mode, payee, asset = "USDC" }) => {
      const what = payee === undefined ? " that you pay by your own means" : ` to ${payee} in ${asset}`;
      if (data.length === 0) return `Nothing is owed${what}, ${mode}.`;
      const made = `${data.length} submitted, ${mode}. Pay them, then holdfast payouts mark-paid.\n\n${rowsOf(data)}`;
      return hasMore ? `${made}\n\n  More is owed: run it again.` : made;
    },
  });
}

const printed = (title: string, { id, payee, amount, asset, reference, reason }: PayoutResource): string =>
  report(title, [
    ["id", id],
    ["payee", payee],
    ["amount", displayAmount(BigInt(amount), asset)],
    ["reference", reference],
    ["reason", reason],
  ]);

function addMarkPaid(payouts: Command, tools: CommandLineTools): void {
  const mark = payouts
    .command("mark-paid")
    .summary("record that a payout has reached its payee")
    .description(
      "Records that a submitted payout was paid. Run again with the same reference, it changes nothing; with another one it is refused.",
    )
    .argument("<payout>", "the payout's id")
    .requiredOption("--reference <text>", "what the payment is called elsewhere, such as by the bank");
  examples(mark, "holdfast payouts mark-paid pay_… --reference 'wire 17'");
  runsOnLedger(mark, tools, {
    input: ({ reference }: { reference: string }, [payout = ""]) => ({ payout_id: payout, reference }),
    verb: (ctx, input) => markPaid(ctx, MACHINE, input),
    print: (payout) => printed("The payout is paid.", payout),
  });
}

function addFail(payouts: Command, tools: CommandLineTools): void {
  const fail = payouts
    .command("fail")
    .summary("record that a payout failed; its amount is owed again")
    .description(
      "Records that a submitted payout failed: its amount is owed again, and the next payout is another one. With --returned, a payment that was marked as paid came back.",
    )
    .argument("<payout>", "the payout's id")
    .requiredOption("--reason <text>", "why it failed")
    .option("--returned", "it was marked as paid, and the payment came back");
  examples(fail, "holdfast payouts fail pay_… --reason 'no such account'");
  runsOnLedger(fail, tools, {
    input: ({ reason, returned }: { reason: string; returned?: true }, [payout = ""]) => ({
      payout_id: payout,
      reason,
      ...given({ returned }),
    }),
    verb: (ctx, input) => failPayoutOf(ctx, MACHINE, input),
    print: (payout) => printed("The payout failed. Its amount is owed again.", payout),
  });
}

const COLUMNS = [
  "id",
  "status",
  "payee",
  "asset",
  "amount",
  "rail",
  "reference",
  "reason",
  "waits_for",
  "transaction",
  "created_at",
  "ended_at",
] as const satisfies readonly (keyof PayoutResource)[];

const cellOf = (payout: PayoutResource, column: (typeof COLUMNS)[number]): string | null =>
  column === "waits_for" ? payout.waits_for && sentenceOf(payout.waits_for) : payout[column];

function addExport(payouts: Command, tools: CommandLineTools): void {
  const exported = payouts
    .command("export")
    .summary("write payouts into a CSV file")
    .description(
      "Writes the payouts of a status, or what is owed, into a new CSV file, with amounts in the smallest unit. A text that a spreadsheet would take for a formula begins with an apostrophe there.",
    )
    .argument("<file>", "the file to write; it must not exist")
    .requiredOption("--organisation <id>", "whose payees they are")
    .addOption(modeOption())
    .addOption(statusOption());
  examples(
    exported,
    "holdfast payouts export payouts.csv --organisation org_… --mode live --status submitted",
  );
  runsOnLedger(exported, tools, {
    input: (flags: ScopeFlags & { status?: PayoutStatus }, [file = ""]) => ({
      file,
      asked: { ...inScope(flags), ...given({ status: flags.status }) },
    }),
    verb: async (ctx, { file, asked }, progress) => {
      let rows = 0;
      const read = pagesOfPayouts(ctx, MACHINE, asked);
      const first = await read(null);
      if (isRefusal(first)) return first;
      return writeNewFile(file, async (append) => {
        append(csvLine(COLUMNS));
        for (let page: typeof first = first; ; ) {
          append(
            page.data.map((payout) => csvLine(COLUMNS.map((column) => cellOf(payout, column)))).join(""),
          );
          rows += page.data.length;
          progress.update(rows, null);
          if (page.next_cursor === null) return { object: "export" as const, file, rows };
          const next = await read(page.next_cursor);
          if (isRefusal(next)) return next;
          page = next;
        }
      });
    },
    step: "writing payouts",
    print: ({ file, rows }) => `${rows} written to ${file}.`,
  });
}
