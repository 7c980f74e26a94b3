import { Argument, type Command } from "commander";
import { printable } from "../../core/hidden-characters.ts";
import { displayAmount } from "../../core/money.ts";
import type { NoteKey } from "../../core/signed-note.ts";
import { parseWitness, verifyReceiptFile } from "../../services/verify-receipt-file.ts";
import { type CommonFlags, examples, group, withCommonFlags } from "../command.ts";
import { CommandFailure, optionFailure } from "../failure.ts";
import { readExactText, readJsonFile } from "../input.ts";
import { report } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

/** A receipt has at most a few hundred entries of a trace; a page adds its script. */
const RECEIPT_BYTES_MAX = 16 * 1024 * 1024;

type Flags = CommonFlags & { readonly jwks?: string; readonly witness?: readonly string[] };
type Verification = Awaited<ReturnType<typeof verifyReceiptFile>>;

export function addReceipt(program: Command, tools: CommandLineTools): void {
  const receipt = group(program, "receipt", "check receipts of settled warrants");
  const verify = receipt
    .command("verify")
    .summary("check a receipt, without a network")
    .description(
      "Checks everything that a receipt proves: its signature, every hash, the moves of its trace, the results of its checks, that its settlement is in the log of the checkpoint, and who cosigned that. Lists whatever does not match, and exits with 1 where something does not. It asks no server and opens no ledger.",
    )
    .addArgument(
      new Argument("<file>", "what GET /t/<warrant> answered, or the page that was saved; - reads stdin"),
    )
    .option(
      "--jwks <file>",
      "the instance's keys, as its /.well-known/jwks.json has them (default: those in a saved page, which do not say whose they are)",
    )
    .option(
      "--witness <key...>",
      "the verifier key of a witness that must have cosigned, such as name+1a2b3c4d+BA… (default: none must)",
    );
  examples(
    verify,
    "holdfast receipt verify receipt.json --jwks jwks.json",
    "holdfast receipt verify receipt.html",
  );
  withCommonFlags(verify).action(async () => {
    const { jwks, witness = [], json } = verify.opts<Flags>();
    const [file = ""] = verify.args;
    const verification = await verifyReceiptFile({
      text: await readExactText("<file>", file, RECEIPT_BYTES_MAX),
      jwks: jwks === undefined ? null : await readJsonFile("--jwks", jwks),
      witnesses: witness.map(witnessOf),
    });
    tools.print(json ? JSON.stringify(verification) : inWords(verification));
    if (!verification.ok) throw new CommandFailure(null);
  });
}

function witnessOf(text: string): NoteKey {
  const key = parseWitness(text);
  if (!key)
    throw optionFailure("--witness", "must be the verifier key of a witness, such as name+1a2b3c4d+BA…");
  return key;
}

const KEYS = {
  given: "those of --jwks",
  embedded: "those in the page itself",
  none: "none",
} as const satisfies Record<Verification["keys"], string>;

function inWords({
  ok,
  problems,
  keys,
  kid,
  warrant,
  log,
  cosigned,
  unknown_cosigners,
  on_chain,
}: Verification): string {
  if (!ok || !warrant)
    return ["The receipt does not hold:", ...problems.map((problem) => `  - ${printable(problem)}`)].join(
      "\n",
    );
  const { id, mode, state, amount, asset, released_bps, payee, settled_at } = warrant;
  return report(
    `${mode === "sandbox" ? "SANDBOX, no real money. " : ""}The receipt holds; nothing in it was altered.`,
    [
      ["warrant", id],
      ["amount", displayAmount(BigInt(amount), asset)],
      ["payee", payee],
      ["state", state],
      ["paid", released_bps === null ? "nothing" : `${released_bps / 100} %`],
      ["settled", settled_at],
      ["keys", KEYS[keys]],
      ["signed by", kid],
      ["in the log", log ?? "not yet"],
      ["on a chain", on_chain ? `${on_chain.network}, block ${on_chain.block}; not asked` : "no"],
      [
        "cosigned by",
        cosigned.map(({ name, at }) => `${name} at ${at}`).join(", ") || "nobody who was asked for",
      ],
      [
        "not verified",
        unknown_cosigners.map((name) => `a line by ${printable(name)}`).join(", ") || "no line",
      ],
    ],
    [...noteOnKeys(keys), ...noteOnChain(on_chain), ON_THE_LOG].join("\n\n"),
  );
}

const ON_THE_LOG =
  "Who keeps no checkpoint of the log, and knows no witness that does, trusts its operator not to rewrite it.";

const noteOnKeys = (keys: Verification["keys"]): readonly string[] =>
  keys === "embedded"
    ? [
        "The keys came with the page: whoever has them signed it. That they are the instance's, its /.well-known/jwks.json says: give it as --jwks.",
      ]
    : [];

/** What to look for, since no chain is asked here. The lines of the text are the signed checkpoint. */
const noteOnChain = (onChain: Verification["on_chain"]): readonly string[] =>
  onChain === null
    ? []
    : [
        `The receipt says that the chain ${onChain.network} has the checkpoint in block ${onChain.block}. The chain was not asked. An explorer of it must show in that block a transaction to ${onChain.address} whose input data, as text, is:\n\n${onChain.text.trimEnd().split("\n").map(printable).join("\n")}`,
      ];
