import type { Command } from "commander";
import { firstOf } from "../../core/first-of.ts";
import { printable } from "../../core/hidden-characters.ts";
import { MACHINE } from "../../services/admin/authority.ts";
import { acknowledgeRestore, declareRestore, type RestoreResource } from "../../services/admin/backup.ts";
import { listTreasuries } from "../../services/admin/treasuries.ts";
import { type CommonFlags, examples, showingProgress, withCommonFlags } from "../command.ts";
import { orFail } from "../failure.ts";
import { given, readSecretFile } from "../input.ts";
import { KEY_FILES, keyFileNames } from "../key-files.ts";
import { report } from "../output.ts";
import type { CommandLineTools, DataFlag } from "../tools.ts";

/** These words are commands, not names of files. A file with such a name can be given as `./acknowledge`. */
const WORDS: Readonly<Record<string, { readonly step: string; readonly act: ByWord }>> = {
  acknowledge: { step: "acknowledging the restore", act: acknowledge },
  declare: { step: "marking the ledger as restored", act: declare },
};
type ByWord = (tools: CommandLineTools, options: DataFlag) => Promise<Printed>;

export function addRestore(program: Command, tools: CommandLineTools): void {
  const restore = program
    .command("restore")
    .argument("<file>", "a backup; or the word acknowledge, or declare")
    .summary("put a backup into an empty data folder")
    .description(
      "Puts a backup into an empty or missing data folder, and audits it. First it is verified: with --key, else with HOLDFAST_BACKUP_KEY or the backup.key of a data folder, the one restored into or the usual one. The backup does not hold what happened after it was made, such as payments. So no live money moves until you have compared the ledger with what you know and run `holdfast restore acknowledge`. Where something else brought the ledger back to an earlier time, such as PostgreSQL's own programs, `holdfast restore declare` says so before a server starts.",
    )
    .option("--key <file>", "the backup.key of the folder that the backup was made of")
    .option(
      "--passphrase-file <file>",
      "the passphrase of an encrypted backup (default: HOLDFAST_BACKUP_PASSPHRASE)",
    )
    .option(
      "--unverified",
      "restore a backup of which no key here says who made it, and mark the ledger so (default: refuse it)",
    )
    .option(
      "--despite-audit",
      "restore the backup as it is, even where its audit disagrees (default: refuse it)",
    );
  examples(
    restore,
    "holdfast restore monday.backup --data ./data",
    "holdfast restore monday.backup --key backup.key --passphrase-file passphrase.txt",
    "holdfast restore acknowledge",
    "holdfast restore declare",
  );
  withCommonFlags(restore).action(async (file: string) => {
    const { data, json, ...options } = restore.opts<CommonFlags & RestoreFlags>();
    const flags = given({ data });
    const { step, act } = WORDS[file] ?? {
      step: "checking the backup and restoring it",
      act: () => restoreFile(tools, file, options, flags),
    };
    const { answer, text } = await showingProgress(tools, { step, json }, () => act(tools, flags));
    tools.print(json ? JSON.stringify(answer) : text);
  });
}

/** The answer for programs, and the text for people. */
type Printed = { readonly answer: object; readonly text: string };

type RestoreFlags = {
  readonly despiteAudit?: boolean;
  readonly unverified?: boolean;
  readonly key?: string;
  readonly passphraseFile?: string;
};

async function restoreFile(
  tools: CommandLineTools,
  file: string,
  { despiteAudit = false, unverified = false, key, passphraseFile }: RestoreFlags,
  flags: DataFlag,
): Promise<Printed> {
  const input = {
    file,
    despiteAudit,
    unverified,
    key: key === undefined ? null : await readSecretFile("--key", key),
    passphrase:
      passphraseFile === undefined ? null : await readSecretFile("--passphrase-file", passphraseFile),
  };
  const answer = orFail(await tools.restore({ ...input, ...flags }));
  const text = report(
    answer.audit === "ok"
      ? "The ledger is restored, and its audit found nothing wrong."
      : `The ledger is restored, AND ITS AUDIT DISAGREES: ${printable(firstOf(answer.problems))}. \`holdfast audit\` lists them.`,
    [
      ["from", answer.file],
      ["into", answer.data_folder],
      ["of", answer.instance_id],
      ["as it was", answer.backed_up_at],
      ["verified", answer.backup_key_id === null ? "NO" : `with the key ${answer.backup_key_id}`],
    ],
    [
      ...(answer.verified
        ? []
        : [
            "NO KEY SAYS WHO MADE THIS BACKUP: anybody may have changed it. The ledger is marked so, and the audit log of each organisation says it.\n",
          ]),
      ...missingKeyWarnings(answer.keys),
      "What came after the backup is lost: warrants, settlements, Idempotency-Keys, revoked keys. Live warrants are refused",
      "until you have looked at that and run `holdfast restore acknowledge`. The sandbox is open at once.",
    ].join("\n"),
  );
  return { answer, text };
}

/** A warning for each key that a restored folder lacks. */
const missingKeyWarnings = (keys: RestoreResource["keys"]): readonly string[] =>
  keyFileNames
    .filter((name) => !keys.includes(name))
    .map((name) => {
      const { setting, without } = KEY_FILES[name];
      return `${name} was not in it: put it into the folder, or set ${setting}, before the server starts. Without it ${without}.\n`;
    });

async function acknowledge(tools: CommandLineTools, options: DataFlag): Promise<Printed> {
  const { ctx, close } = orFail(await tools.open({ create: false, ...options }));
  try {
    const answer = orFail(await acknowledgeRestore(ctx));
    if (answer.restored_at === null)
      return { answer, text: "This ledger was never restored; there is nothing to acknowledge." };
    const unverified =
      answer.restored_unverified_at === null
        ? ""
        : `\nThe backup that was restored on ${answer.restored_unverified_at} was not verified; the ledger stays marked so.`;
    const { data: treasuries } = orFail(await listTreasuries(ctx, MACHINE));
    const payouts =
      treasuries.length === 0
        ? ""
        : "\nPayouts on chains stop where a wallet has sent what this ledger does not know: see `holdfast treasuries list`, and compare before `holdfast treasuries resume`.";
    const text = `The restore of ${answer.restored_at} is acknowledged; live warrants open again.${payouts}${unverified}`;
    return { answer, text };
  } finally {
    await close();
  }
}

async function declare(tools: CommandLineTools, options: DataFlag): Promise<Printed> {
  const { ctx, close } = orFail(await tools.open({ create: false, ...options }));
  try {
    const answer = orFail(await declareRestore(ctx));
    const text = [
      `The ledger is marked as restored on ${answer.restored_at}. What came after that moment is lost: warrants, settlements, Idempotency-Keys,`,
      "revoked keys. Live warrants are refused until you have looked at that and run `holdfast restore acknowledge`. The sandbox is open.",
    ].join("\n");
    return { answer, text };
  } finally {
    await close();
  }
}
