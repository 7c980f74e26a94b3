import type { Command } from "commander";
import { displayAmount } from "../../core/money.ts";
import type { Mode } from "../../core/roles.ts";
import { MACHINE } from "../../services/admin/authority.ts";
import {
  acknowledgePurchase,
  listPurchases,
  resolvePurchase,
  showPurchase,
} from "../../services/x402/purchases.ts";
import { type Answer, examples, group, modeOption, runsOnLedger } from "../command.ts";
import { optionFailure } from "../failure.ts";
import { given, wholeNumberIfGiven } from "../input.ts";
import { report, table } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

type Purchase = Answer<typeof showPurchase>;

export function addX402(program: Command, tools: CommandLineTools): void {
  const x402 = group(program, "x402", "see purchases by x402, and whether their sellers were paid");
  addList(x402, tools);
  addShow(x402, tools);
  addResolve(x402, tools);
  addAcknowledge(x402, tools);
}

function addList(x402: Command, tools: CommandLineTools): void {
  const list = x402
    .command("list")
    .summary("list purchases, newest first")
    .description("Lists an organisation's purchases in one mode, newest first.")
    .requiredOption("--organisation <id>", "whose purchases they are")
    .addOption(modeOption())
    .option("--limit <count>", "how many purchases, 1 to 100 (default: 25)")
    .option(
      "--starting-after <purchase>",
      "only purchases older than this one (default: from the newest on)",
    );
  examples(list, "holdfast x402 list --organisation org_… --mode live --limit 100");
  type Flags = { organisation: string; mode: Mode; limit?: string; startingAfter?: string };
  runsOnLedger(list, tools, {
    input: ({ organisation, mode, limit, startingAfter }: Flags) => ({
      organisation_id: organisation,
      mode,
      ...given({ limit: wholeNumberIfGiven(limit), starting_after: startingAfter }),
    }),
    verb: (ctx, input) => listPurchases(ctx, MACHINE, input),
    print: ({ data, has_more }, { mode }) => {
      if (data.length === 0) return `Nothing has been bought, ${mode}.`;
      const rows = data.map((purchase) => [
        purchase.id,
        purchase.phase,
        quoteOf(purchase),
        purchase.warrant_state ?? "nothing held",
        knownOf(purchase),
        purchase.url,
      ]);
      const lines = table([mode, "phase", "quote", "warrant", "payment", "url"], rows);
      return has_more ? `${lines}\n\nOlder ones: --starting-after ${data.at(-1)?.id}` : lines;
    },
  });
}

function addShow(x402: Command, tools: CommandLineTools): void {
  const show = x402
    .command("show")
    .summary("show one purchase")
    .description(
      "Shows a purchase: how far it came, what the seller asked, whether the seller was paid, and how that is known.",
    )
    .argument("<purchase>", "the purchase's id");
  examples(show, "holdfast x402 show pur_…");
  runsOnLedger(show, tools, {
    input: (_: object, [purchaseId = ""]) => ({ purchase_id: purchaseId }),
    verb: (ctx, input) => showPurchase(ctx, MACHINE, input),
    print: (purchase) => report(`The purchase is ${purchase.phase}.`, fieldsOf(purchase)),
  });
}

function addResolve(x402: Command, tools: CommandLineTools): void {
  const resolve = x402
    .command("resolve")
    .summary("say whether a seller was paid, where no chain can say it")
    .description(
      "Records whether a seller was paid, where Holdfast does not know it. You can say so one hour after the payment has expired if the server has no endpoint of its chain in HOLDFAST_EVM_RPC, or once that endpoint has not answered for a day. --unpaid returns the hold; after --paid a person can release the warrant. This cannot be undone.",
    )
    .argument("<purchase>", "the purchase's id")
    .option("--paid", "the seller has the money; this or --unpaid")
    .option("--unpaid", "the seller does not have it, and cannot get it any more")
    .option("--note <text>", "how you know (default: none)");
  examples(resolve, 'holdfast x402 resolve pur_… --unpaid --note "not in the block explorer"');
  runsOnLedger(resolve, tools, {
    input: ({ paid, unpaid, note }: { paid?: boolean; unpaid?: boolean; note?: string }, [id = ""]) => {
      if (paid === unpaid) throw optionFailure("--paid", "say --paid, or --unpaid");
      const known = paid ? ("paid" as const) : ("unpaid" as const);
      return { purchase_id: id, known, ...given({ note }) };
    },
    verb: (ctx, input) => resolvePurchase(ctx, MACHINE, input),
    print: (purchase) =>
      report(
        purchase.known === "paid" ? "The seller was paid." : "The seller was not paid; the hold returned.",
        fieldsOf(purchase),
        ...(purchase.known === "paid" ? ["A person can release the warrant now, and nothing else."] : []),
      ),
  });
}

function addAcknowledge(x402: Command, tools: CommandLineTools): void {
  const acknowledge = x402
    .command("acknowledge")
    .summary("acknowledge that the chain contradicts what a person said")
    .description(
      "Records that you know of a payment of which its chain says otherwise than the person who attested it, and have set it right outside of Holdfast. Nothing moves. From then on neither the audit nor /readyz alarms because of it.",
    )
    .argument("<purchase>", "the purchase's id")
    .option("--note <text>", "what you did about it; it is kept in the audit log (default: none)");
  examples(acknowledge, 'holdfast x402 acknowledge pur_… --note "the seller sent it back"');
  runsOnLedger(acknowledge, tools, {
    input: ({ note }: { note?: string }, [id = ""]) => ({ purchase_id: id, ...given({ note }) }),
    verb: (ctx, input) => acknowledgePurchase(ctx, MACHINE, input),
    print: (purchase) => report("Acknowledged. Nothing has moved.", fieldsOf(purchase)),
  });
}

const quoteOf = ({ quoted }: Purchase): string =>
  quoted === null ? "none" : displayAmount(BigInt(quoted.amount), quoted.asset);

/** Whether the seller was paid, and how that is known. */
function knownOf({
  pays,
  known,
  known_by,
  chain_said,
  contradicted,
  acknowledged_at,
  attempt,
  transaction,
}: Purchase): string {
  if (pays?.kind === "voucher") return "a voucher, paid in the ledger";
  if (known === null) return "none";
  const source = known_by === null ? "" : `, by ${known_by}`;
  const seen = acknowledged_at === null ? "" : `, acknowledged ${acknowledged_at}`;
  const chain =
    chain_said === null
      ? ""
      : contradicted
        ? `, BUT THE CHAIN SAYS ${chain_said}${seen}`
        : ", the chain agrees";
  const never = attempt === "never_connected" ? ", the seller was never reached" : "";
  return `${known}${source}${chain}${never}${transaction === null ? "" : `, ${transaction}`}`;
}

const fieldsOf = (purchase: Purchase) =>
  [
    ["id", purchase.id],
    ["url", `${purchase.method} ${purchase.url}`],
    ["phase", purchase.phase],
    ["quote", quoteOf(purchase)],
    ["payee", purchase.quoted?.payee ?? null],
    ["network", purchase.pays?.kind === "exact" ? purchase.pays.network : null],
    ["wallet", purchase.payer],
    ["good until", purchase.valid_before],
    ["warrant", purchase.warrant_id],
    ["state", purchase.warrant_state],
    ["request", purchase.attempt],
    ["answer", purchase.response_status],
    ["payment", knownOf(purchase)],
    ["asked again", purchase.next_check_at],
    ["begun", purchase.created_at],
    ["ended", purchase.ended_at],
  ] as const;
