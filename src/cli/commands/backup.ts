import type { Command } from "commander";
import type { BackupResource } from "../../services/admin/backup.ts";
import { type CommonFlags, examples, showingProgress, withCommonFlags } from "../command.ts";
import { orFail } from "../failure.ts";
import { given } from "../input.ts";
import { KEY_FILES, keyFileNames } from "../key-files.ts";
import { report } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

export function addBackup(program: Command, tools: CommandLineTools): void {
  const backup = program
    .command("backup")
    .argument("<file>", "a new file; a file that exists is not overwritten")
    .summary("copy the ledger and its keys into one file")
    .description(
      "Copies the ledger, as it is at this moment, and its key files into one new file, and audits the copy. Where the audit disagrees the file is made all the same; then this fails with audit_disagrees. The server may be running.",
    )
    .option("--without-keys", "leave out the key files, which a restore needs (default: include them)")
    .option(
      "--disagrees-as <file>",
      "the new file that is made instead where the audit of the copy disagrees (default: the same file)",
    );
  examples(
    backup,
    "holdfast backup /mnt/backups/monday.backup",
    "holdfast backup monday.backup --without-keys",
  );
  withCommonFlags(backup).action(async (file: string) => {
    const {
      data,
      json,
      withoutKeys = false,
      disagreesAs: disagreesFile = file,
    } = backup.opts<CommonFlags & { withoutKeys?: boolean; disagreesAs?: string }>();
    const made = await showingProgress(
      tools,
      { step: "copying the ledger and checking the copy", json },
      async () =>
        orFail(await tools.backUp({ file, disagreesFile, withKeys: !withoutKeys, ...given({ data }) })),
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
            keysInBackup(made.keys),
          ),
    );
  });
}

/** Which keys are in a backup, and what that means for the person who keeps it. */
const keysInBackup = (keys: BackupResource["keys"]): string =>
  keyFileNames
    .map((name) => {
      const { can, setting, without } = KEY_FILES[name];
      return keys.includes(name)
        ? `${name} is in it, not encrypted: whoever has the file can ${can}. Guard it like the data folder.`
        : `${name} is not in it. Keep that key, or the value of ${setting}, elsewhere: without it, after a restore, ${without}.`;
    })
    .join("\n");
