import type { Command } from "commander";
import {
  acknowledgeRestore,
  type BackupResource,
  type RestoreResource,
} from "../../services/admin/backup.ts";
import { type CommonFlags, examples, withCommonFlags } from "../command.ts";
import { orFail } from "../failure.ts";
import { given } from "../input.ts";
import { report } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

type KeyFile = BackupResource["keys"][number];

/** What whoever has a key can do, and what becomes of a restore without it. */
const KEYS: Readonly<Record<KeyFile, { can: string; setting: string; without: string }>> = {
  "master.key": {
    can: "read the webhook secrets",
    setting: "HOLDFAST_MASTER_KEY",
    without: "the webhook secrets cannot be read, and the server does not start while an endpoint needs one",
  },
  "signing.key": {
    can: "sign vouchers as this instance",
    setting: "HOLDFAST_SIGNING_KEY",
    without: "the server makes a new one, and the vouchers that were signed before no longer verify",
  },
};

const NAMES = Object.keys(KEYS) as readonly KeyFile[];

/** Which keys are in a backup, and what that means for whoever keeps it. */
const tellKeys = (keys: BackupResource["keys"]): string =>
  NAMES.map((name) => {
    const { can, setting, without } = KEYS[name];
    return keys.includes(name)
      ? `${name} is in it, in the clear: whoever has the file can ${can}. Keep it as you keep the data folder.`
      : `${name} is not in it. Keep that key, or the value of ${setting}, apart: without it, after a restore, ${without}.`;
  }).join("\n");

/** A warning for each key that a restored folder lacks. */
const warnOfMissing = (keys: RestoreResource["keys"]): readonly string[] =>
  NAMES.filter((name) => !keys.includes(name)).map((name) => {
    const { setting, without } = KEYS[name];
    return `${name} was not in it: put it into the folder, or set ${setting}, before the server starts. Without it ${without}.\n`;
  });

export function addBackup(program: Command, tools: CommandLineTools): void {
  const backup = program
    .command("backup")
    .argument("<file>", "a new file; one that is there is not overwritten")
    .summary("copy the ledger and its keys into one file")
    .description(
      "Copies the ledger, as it is at this moment, and its key files into one new file, and audits the copy. The server may go on running.",
    )
    .option("--without-keys", "leave the key files out: keep them apart, a restore needs them");
  examples(
    backup,
    "holdfast backup /mnt/backups/monday.backup",
    "holdfast backup monday.backup --without-keys",
  );
  withCommonFlags(backup).action(async (file: string) => {
    const { data, json, withoutKeys = false } = backup.opts<CommonFlags & { withoutKeys?: boolean }>();
    const made = orFail(await tools.backUp({ file, withKeys: !withoutKeys, ...given({ data }) }));
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
            tellKeys(made.keys),
          ),
    );
  });
}

/** The one word that is no file; a file of this name is `./acknowledge`. */
const ACKNOWLEDGE = "acknowledge";

export function addRestore(program: Command, tools: CommandLineTools): void {
  const restore = program
    .command("restore")
    .argument("<file>", "a backup; or the word acknowledge")
    .summary("put a backup into an empty data folder")
    .description(
      "Puts a backup into an empty or missing data folder and audits it. An old copy has forgotten what came after it, payments among it: until `holdfast restore acknowledge`, warrants open in the sandbox only.",
    );
  examples(restore, "holdfast restore monday.backup --data ./data", "holdfast restore acknowledge");
  withCommonFlags(restore).action(async (file: string) => {
    const { data, json } = restore.opts<CommonFlags>();
    const options = given({ data });
    const { answer, told } =
      file === ACKNOWLEDGE
        ? await acknowledge(tools, options)
        : await restoreFile(tools, { file, ...options });
    tools.print(json ? JSON.stringify(answer) : told);
  });
}

type DataFlag = { readonly data?: string };
type Told = { readonly answer: object; readonly told: string };

async function restoreFile(
  tools: CommandLineTools,
  options: DataFlag & { readonly file: string },
): Promise<Told> {
  const answer = orFail(await tools.restore(options));
  const told = report(
    "The ledger is restored, and its audit found nothing wrong.",
    [
      ["from", answer.file],
      ["into", answer.data_folder],
      ["of", answer.instance_id],
      ["as it was", answer.backed_up_at],
    ],
    [
      ...warnOfMissing(answer.keys),
      "What came after the backup is forgotten: warrants, settlements, Idempotency-Keys, revoked keys. Live warrants are",
      "refused until you have looked at that and run `holdfast restore acknowledge`; the sandbox is open.",
    ].join("\n"),
  );
  return { answer, told };
}

async function acknowledge(tools: CommandLineTools, options: DataFlag): Promise<Told> {
  const { ctx, close } = orFail(await tools.open({ create: false, ...options }));
  try {
    const answer = orFail(await acknowledgeRestore(ctx));
    const told =
      answer.restored_at === null
        ? "This ledger was never restored; there is nothing to acknowledge."
        : `The restore of ${answer.restored_at} is acknowledged; live warrants open again.`;
    return { answer, told };
  } finally {
    await close();
  }
}
