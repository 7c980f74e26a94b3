import type { Command } from "commander";
import type { BackupResource } from "../../services/admin/backup.ts";
import { type CommonFlags, examples, showingProgress, withCommonFlags } from "../command.ts";
import { orFail } from "../failure.ts";
import { given, readSecretFile } from "../input.ts";
import { KEY_FILES, keyFileNames } from "../key-files.ts";
import { report } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

export function addBackup(program: Command, tools: CommandLineTools): void {
  const backup = program
    .command("backup")
    .argument("<file>", "a new file; a file that exists is not overwritten")
    .summary("copy the ledger and its keys into one file")
    .description(
      "Copies the ledger, as it is at this moment, and its key files into one new file, and audits the copy. Where the audit disagrees the file is made all the same; then this fails with audit_disagrees. The server may be running. The file is authenticated with backup.key, which is not in it: keep a copy of that key elsewhere, since a restore on another machine needs it.",
    )
    .option(
      "--passphrase-file <file>",
      "encrypt the backup to the passphrase in this file, - for the standard input (default: HOLDFAST_BACKUP_PASSPHRASE; else it is not encrypted)",
    )
    .option("--without-keys", "leave out the key files, which a restore needs (default: include them)")
    .option(
      "--disagrees-as <file>",
      "the new file that is made instead where the audit of the copy disagrees (default: the same file)",
    );
  examples(
    backup,
    "holdfast backup /mnt/backups/monday.backup",
    "holdfast backup monday.backup --passphrase-file passphrase.txt",
    "holdfast backup monday.backup --without-keys",
  );
  withCommonFlags(backup).action(async (file: string) => {
    const {
      data,
      json,
      withoutKeys = false,
      disagreesAs: disagreesFile = file,
      passphraseFile,
    } = backup.opts<CommonFlags & BackupFlags>();
    const passphrase =
      passphraseFile === undefined ? null : await readSecretFile("--passphrase-file", passphraseFile);
    const made = await showingProgress(
      tools,
      { step: "copying the ledger and checking the copy", json },
      async () =>
        orFail(
          await tools.backUp({ file, disagreesFile, withKeys: !withoutKeys, passphrase, ...given({ data }) }),
        ),
    );
    tools.print(
      json
        ? JSON.stringify(made)
        : report(
            "The backup is made, and its audit found nothing wrong.",
            [
              ["file", made.file],
              ["bytes", made.bytes],
              ["of", made.instance_id],
              ["made", made.created_at],
            ],
            [...keysInBackup(made), ...secretsOfRestore(made)].join("\n"),
          ),
    );
  });
}

type BackupFlags = {
  readonly withoutKeys?: boolean;
  readonly disagreesAs?: string;
  readonly passphraseFile?: string;
};

/** Which keys are in a backup, and what that means for the person who keeps it. */
const keysInBackup = ({ keys, encrypted }: BackupResource): readonly string[] =>
  keyFileNames.map((name) => {
    const { can, setting, without } = KEY_FILES[name];
    if (!keys.includes(name)) {
      return `${name} is not in it. Keep that key, or the value of ${setting}, elsewhere: without it, after a restore, ${without}.`;
    }
    return encrypted
      ? `${name} is in it, encrypted: whoever has the file and the passphrase can ${can}.`
      : `${name} is in it, not encrypted: whoever has the file can ${can}. Guard it like the data folder.`;
  });

/** What a restore on another machine needs besides the file. */
const secretsOfRestore = ({ encrypted, backup_key_id }: BackupResource): readonly string[] => [
  `A restore elsewhere needs the key that authenticates it (${backup_key_id}): backup.key in the data folder, or HOLDFAST_BACKUP_KEY. Keep a copy apart from the backups.`,
  ...(encrypted ? ["It needs the passphrase too: without that nobody can read the backup."] : []),
];
