import { Argument, type Command } from "commander";
import { isRefusal } from "../../core/errors.ts";
import { printable } from "../../core/hidden-characters.ts";
import { displayAmount } from "../../core/money.ts";
import type { Mode } from "../../core/roles.ts";
import { proofText } from "../../core/solvency/proof.ts";
import { MACHINE } from "../../services/admin/authority.ts";
import { showSolvency } from "../../services/solvency/figures.ts";
import { type ProofInput, proveSolvency } from "../../services/solvency/prove.ts";
import { listStatements, showStatement } from "../../services/solvency/read.ts";
import { signStatement } from "../../services/solvency/sign.ts";
import { verifySolvencyFile } from "../../services/solvency/verify.ts";
import {
  type Answer,
  type CommonFlags,
  examples,
  modeOption,
  runsOnLedger,
  withCommonFlags,
} from "../command.ts";
import { CommandFailure } from "../failure.ts";
import { given, readExactText, readJsonFile, wholeNumberIfGiven } from "../input.ts";
import { writeNewFile } from "../new-file.ts";
import { report, table } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

/** A path of 30 siblings for each of 256 assets, and a statement of 160 KiB. */
const PROOF_BYTES_MAX = 4 * 1024 * 1024;

export function addSolvency(program: Command, tools: CommandLineTools): void {
  const solvency = program
    .command("solvency")
    .summary("compare what is owed with what chains hold, sign it, prove it")
    .description(
      "Shows what the ledger owes of each asset, beside what its wallet on the chain holds at the newest confirmed block. Its commands sign statements of what is owed, and prove to whom something is owed that it is in a statement.",
    )
    .helpCommand(false)
    .enablePositionalOptions();
  // Both, so that the options after one of its commands are not taken for its own.
  program.enablePositionalOptions();
  examples(solvency, "holdfast solvency", "holdfast solvency --json");
  runsOnLedger(solvency, tools, {
    input: () => ({}),
    verb: (ctx) => showSolvency(ctx, MACHINE),
    step: "asking the chains",
    print: printFigures,
  });
  addSign(solvency, tools);
  addList(solvency, tools);
  addProve(solvency, tools);
  addVerify(solvency, tools);
}

const JUDGEMENTS = { enough: "enough", short: "LESS THAN OWED", unknown: "unknown" } as const;

function printFigures({ data }: Answer<typeof showSolvency>): string {
  if (data.length === 0) return "Nothing is owed, and no wallet holds money on a chain.";
  const amount = (digits: string | null, asset: string): string =>
    digits === null ? "" : displaySigned(BigInt(digits), asset);
  return [
    table(
      ["mode", "asset", "owes", "available", "held", "payable", "submitted", "chain holds", "difference", ""],
      data.map((line) => [
        ...[line.mode, line.asset],
        ...[line.owes, line.available, line.held, line.payable, line.submitted].map((digits) =>
          amount(digits, line.asset),
        ),
        ...[amount(line.holds, line.asset), amount(line.difference, line.asset)],
        line.judgement === null ? "by your own means" : JUDGEMENTS[line.judgement],
      ]),
    ),
    ...data.flatMap(({ mode, asset, chain, address, block, block_hash: hash, block_time: time, away }) =>
      chain === null
        ? []
        : [
            away === null
              ? `${mode} ${asset}: ${address} on ${chain} at block ${block} (${hash}) of ${time}`
              : `${mode} ${asset}: ${address} on ${chain}; the chain does not say (${away})`,
          ],
    ),
  ].join("\n");
}

const displaySigned = (amount: bigint, asset: string): string =>
  amount < 0n ? `-${displayAmount(-amount, asset)}` : displayAmount(amount, asset);

type StatementShown = Answer<typeof showStatement>;

function addSign(solvency: Command, tools: CommandLineTools): void {
  const sign = solvency
    .command("sign")
    .summary("sign a statement of what is owed")
    .description(
      "Signs what the ledger owes of each asset, as the root of a tree in which every creditor has a leaf, and what the chains hold, and puts it into the log. Whoever reaches the server can read it from then on, with its sums: /.well-known/holdfast/solvency. The server does so by itself where HOLDFAST_SOLVENCY_HOURS is set.",
    );
  examples(sign, "holdfast solvency sign");
  runsOnLedger(sign, tools, {
    input: () => ({}),
    async verb(ctx) {
      const signed = await signStatement(ctx);
      return isRefusal(signed) ? signed : showStatement(ctx, MACHINE, signed.number);
    },
    step: "signing what is owed",
    print: printStatement,
  });
}

const printStatement = ({
  number,
  created_at,
  posting,
  hash,
  leaf_index,
  assets,
  left_out,
}: StatementShown) =>
  report(
    `The statement ${number} is signed, and in the log.`,
    [
      ["signed at", created_at],
      ["last posting", `${posting}`],
      ["SHA-256", hash],
      ["leaf of the log", leaf_index === null ? "not yet" : `${leaf_index}`],
      ...(left_out === 0 ? [] : [["assets left out", `${left_out}`] as const]),
    ],
    assets.length === 0
      ? "Nothing is owed."
      : table(
          ["mode", "asset", "owed", "to", "chain holds"],
          assets.map(({ mode, asset, owed, leaves, holding }) => [
            ...[mode, asset, displayAmount(BigInt(owed), asset), `${leaves}`],
            holding === null
              ? ""
              : holding.balance === null
                ? "unknown"
                : displayAmount(BigInt(holding.balance), asset),
          ]),
        ),
  );

function addList(solvency: Command, tools: CommandLineTools): void {
  const list = solvency
    .command("list")
    .summary("list the newest statements")
    .description("Lists the newest statements, newest first.")
    .option("--limit <count>", "how many, at most 100 (default: 10)");
  examples(list, "holdfast solvency list");
  runsOnLedger(list, tools, {
    input: ({ limit }: { limit?: string }) => given({ limit: wholeNumberIfGiven(limit) }),
    verb: (ctx, input) => listStatements(ctx, MACHINE, input),
    print: ({ data, has_more }) =>
      data.length === 0
        ? "No statement was signed so far: holdfast solvency sign."
        : [
            table(
              ["number", "signed at", "assets", "leaf of the log", "SHA-256"],
              data.map(({ number, created_at, assets, leaf_index, hash }) => [
                ...[`${number}`, created_at, `${assets.length}`, `${leaf_index ?? "not yet"}`, hash],
              ]),
            ),
            ...(has_more ? ["There are older ones."] : []),
          ].join("\n"),
  });
}

function addProve(solvency: Command, tools: CommandLineTools): void {
  const prove = solvency
    .command("prove")
    .summary("prove to somebody that what is owed to them is in a statement")
    .description(
      "Writes a new file with the proof that what is owed to an organisation, or to a payee of it, is in the sums of a statement. It names nobody else, and shows some sums of others (docs/solvency). With a million payees it takes five seconds of a processor.",
    )
    .argument("<file>", "the file to write; it must not exist")
    .requiredOption("--organisation <id>", "to whom it is owed, or whose payee it is")
    .addOption(modeOption())
    .option("--asset <asset>", "only this asset (default: all of them)")
    .option("--payee <payee>", "a payee (default: the organisation itself)")
    .option("--statement <number>", "which statement (default: the newest one)");
  examples(
    prove,
    "holdfast solvency prove proof.json --organisation org_… --mode live",
    "holdfast solvency prove acme.json --organisation org_… --mode live --payee acme --asset USDC",
  );
  type Flags = { organisation: string; mode: Mode; asset?: string; payee?: string; statement?: string };
  runsOnLedger(prove, tools, {
    input({ organisation, mode, asset, payee, statement }: Flags, [file = ""]) {
      const number = wholeNumberIfGiven(statement);
      const asked: ProofInput = {
        ...{ organisation_id: organisation, mode },
        ...given({ asset, payee, statement: number }),
      };
      return { file, asked };
    },
    async verb(ctx, { file, asked }) {
      const proof = await proveSolvency(ctx, MACHINE, asked);
      if (isRefusal(proof)) return proof;
      const entries = proof.entries.map(({ leaf: { salt: _, ...leaf } }) => leaf);
      await writeNewFile(file, async (append) => append(proofText(proof)));
      return { object: "solvency_proof_file" as const, file, kid: proof.kid, entries };
    },
    step: "making the proof",
    print: ({ file, entries }) =>
      `Written to ${file}: ${entries.map(({ amount, asset }) => displayAmount(BigInt(amount), asset)).join(", ")}.`,
  });
}

type VerifyFlags = CommonFlags & { readonly jwks?: string };

function addVerify(solvency: Command, tools: CommandLineTools): void {
  const verify = solvency
    .command("verify")
    .summary("check a proof, without a network")
    .description(
      "Checks a proof: that its entries lead to the sums of the statement, that the instance signed the statement, and that its log has it. It asks no server and opens no ledger. Lists whatever does not match, and exits with 1 where something does not.",
    )
    .addArgument(new Argument("<file>", "what holdfast solvency prove wrote; - reads stdin"))
    .requiredOption("--jwks <file>", "the instance's keys, as its /.well-known/jwks.json has them");
  examples(verify, "holdfast solvency verify proof.json --jwks jwks.json");
  withCommonFlags(verify).action(async () => {
    const { jwks = "", json } = verify.opts<VerifyFlags>();
    const [file = ""] = verify.args;
    const found = await verifySolvencyFile(
      await readExactText("<file>", file, PROOF_BYTES_MAX),
      await readJsonFile("--jwks", jwks),
    );
    tools.print(json ? JSON.stringify(found) : printVerified(found));
    if (!found.ok) throw new CommandFailure(null);
  });
}

function printVerified({
  ok,
  problems,
  statement,
  entries,
  assets,
  log,
  kid,
}: Awaited<ReturnType<typeof verifySolvencyFile>>) {
  if (!ok || !statement)
    return ["The proof does not hold:", ...problems.map((problem) => `  - ${printable(problem)}`)].join("\n");
  return report(
    "The proof holds: what it says is owed is in the sums of the statement.",
    [
      ...entries.map(
        ({ organisation_id, payee, mode, asset, amount }) =>
          [
            `owed in ${mode}`,
            `${displayAmount(BigInt(amount), asset)} to ${payee ?? organisation_id}`,
          ] as const,
      ),
      ...assets.map(
        ({ mode, asset, owed, leaves }) =>
          [`all ${mode}`, `${displayAmount(BigInt(owed), asset)} to ${leaves} creditors`] as const,
      ),
      ["statement", `${statement.number} of ${statement.instance_id}, signed at ${statement.created_at}`],
      ["SHA-256", statement.hash ?? ""],
      ["signed by", kid ?? ""],
      ["in the log", log === null ? "no" : `${log.name}, a checkpoint of ${log.size} entries`],
    ],
    "Compare the SHA-256 with that of the statement as the instance publishes it, and as others have it: an instance that shows different statements to different people is found out only so.",
  );
}
