import type { Command } from "commander";
import { isId } from "../../core/ids.ts";
import { exportCheck } from "../../services/checks/export.ts";
import type { CheckReplay } from "../../services/checks/replay.ts";
import {
  type CommonFlags,
  examples,
  group,
  runsOnLedger,
  showingProgress,
  withCommonFlags,
} from "../command.ts";
import { CommandFailure, orFail } from "../failure.ts";
import { given, readJsonFile } from "../input.ts";
import { report, table } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

/** 10 MiB of evidence in base64, and the rest of an export. */
const FILE_BYTES_MAX = 24 * 1024 * 1024;

export function addChecks(program: Command, tools: CommandLineTools): void {
  const checks = group(program, "checks", "take a check with you, and make it again");
  addExport(checks, tools);
  addReplay(checks, tools);
}

function addExport(checks: Command, tools: CommandLineTools): void {
  const exported = checks
    .command("export")
    .summary("print a check with all that it was made from")
    .description(
      "Prints one JSON object with everything that a check was made from: the check, the spec, the named schemas, what was seen of the source, and the bytes. Whoever has it can make the check again. It is not for the public: the source's answer is in it.",
    )
    .argument("<check>", "the check's id, which the warrant's page and GET /v1/warrants/:id/checks show");
  examples(exported, "holdfast checks export chk_… > check.json");
  runsOnLedger(exported, tools, {
    input: (_: object, [checkId = ""]) => ({ check_id: checkId }),
    verb: (ctx, input) => exportCheck(ctx, input),
    print: (file) => JSON.stringify(file),
  });
}

function addReplay(checks: Command, tools: CommandLineTools): void {
  const replay = checks
    .command("replay")
    .summary("make a check again, and compare")
    .description(
      "Evaluates a check again, at its own time, from the bytes that it was made from, verifies the source's signature again where there is one, and says of each clause whether the result is the same. A file needs no ledger, and is refused where any of its hashes is wrong. Exits with 1 where something is different.",
    )
    .argument("<check>", "a file of `holdfast checks export`, or the check's id");
  examples(replay, "holdfast checks replay check.json", "holdfast checks replay chk_…");
  replay.option(
    "--sigstore-root <file>",
    "the trusted root that a Sigstore bundle is verified with (default: HOLDFAST_SIGSTORE_ROOT)",
  );
  withCommonFlags(replay).action(async (check: string) => {
    const { data, json, sigstoreRoot } = replay.opts<CommonFlags & { sigstoreRoot?: string }>();
    const file = isId("check", check)
      ? await exportedFrom(tools, check, data)
      : await readJsonFile("<check>", check, FILE_BYTES_MAX);
    const replayed = await showingProgress(tools, { step: "evaluating the check", json }, async () =>
      orFail(await tools.replayCheck(file, given({ sigstoreRoot }))),
    );
    tools.print(json ? JSON.stringify(replayed) : comparison(replayed));
    if (replayed.result === "different") throw new CommandFailure(null);
  });
}

async function exportedFrom(tools: CommandLineTools, check: string, data: string | undefined) {
  const { ctx, close } = orFail(await tools.open({ create: false, ...given({ data }) }));
  try {
    return orFail(await exportCheck(ctx, { check_id: check }));
  } finally {
    await close();
  }
}

const resultOf = ({ passed, reason_code }: CheckReplay["clauses"][number]["recorded"]): string =>
  passed ? "passed" : (reason_code ?? "failed");

const signerText = ({ result, recorded, replayed }: CheckReplay["signed_by"]): string =>
  result === "not_checked"
    ? `not checked, without a --sigstore-root: ${recorded} then`
    : `${result}: ${recorded ?? "nobody"} then, ${replayed ?? "nobody"} now`;

function comparison(replay: CheckReplay): string {
  const { check_id, evaluated_at, evaluator_version, clauses, score, reason_codes, signed_by, result } =
    replay;
  const rows = clauses.map(({ kind, result, recorded, replayed }) => [
    kind,
    result,
    resultOf(recorded),
    resultOf(replayed),
  ]);
  return report(
    result === "same" ? "The check comes out the same." : "The check comes out DIFFERENT.",
    [
      ["check", check_id],
      ["evaluated at", evaluated_at],
      ["evaluator", `version ${evaluator_version.recorded} then, ${evaluator_version.replayed} now`],
      ["score", `${score.result}: ${score.recorded} then, ${score.replayed} now`],
      [
        "reason codes",
        `${reason_codes.result}: ${reason_codes.recorded.join(", ") || "none"} then, ${reason_codes.replayed.join(", ") || "none"} now`,
      ],
      ["signed by", signerText(signed_by)],
    ],
    table(["clause", "result", "recorded", "replayed"], rows),
  );
}
