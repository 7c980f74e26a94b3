import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import type { Config, Secrets } from "../config.ts";
import type { NewestBackup } from "../core/backup-schedule.ts";
import { isRefusal, type Refusal, refuseField } from "../core/errors.ts";
import { createIds } from "../core/ids.ts";
import { BACKUP_KEY_FILE } from "../core/instance.ts";
import { FREE_BYTES_MIN_OF_SANDBOX } from "../core/operation.ts";
import { MINUTE_MS, SECOND_MS } from "../core/time.ts";
import { nightlyBackup } from "../jobs/backup.ts";
import type { Job } from "../jobs/scheduler.ts";
import { createBackupChild } from "../platform/backup-child.ts";
import { decryptInPlace, encryptFile } from "../platform/backup-encryption.ts";
import { freeBytesOf } from "../platform/disk.ts";
import { keyFilesIn, readKeyFiles, writeBackupKey, writeKeyFiles } from "../platform/key-files.ts";
import { random40 } from "../platform/random.ts";
import {
  type BackupInput,
  type BackupResource,
  backUp,
  type RestoreInput,
  type RestoreResource,
  restoreFrom,
} from "../services/admin/backup.ts";
import type { Context } from "../services/context.ts";
import { serverHasRun } from "../services/instance.ts";
import { writeBackup } from "../store/sqlite/backup.ts";
import { keyIdOf } from "../store/sqlite/last-line.ts";
import { ledgerFile } from "../store/sqlite/ledger-file.ts";
import { restoreBackup } from "../store/sqlite/restore.ts";
import { backupKeyOfCommand, backupKeysOfRestore, passphraseOf } from "./backup-keys.ts";

export const BACKUP_JOB = "backup";

type Opened = { readonly ctx: Context; close(): Promise<void> };

/**
 * Copies the ledger of the data folder into a new file, and closes the opened ledger. A server may be running
 * on the folder.
 */
export async function backUpFolder(
  config: Config,
  secrets: Secrets,
  { ctx, close }: Opened,
  input: BackupInput,
): Promise<BackupResource | Refusal> {
  const { data } = config;
  // It is closed before the copy, which takes long: while a ledger is open for reading, its write-ahead log
  // only grows.
  const instance = await ctx.store.read((reader) => reader.instance.get()).finally(close);
  const passphrase = passphraseOf(input.passphrase, secrets);
  if (isRefusal(passphrase)) return passphrase;
  const crowded = passphrase === null ? null : refuseCrowded(data);
  if (crowded) return crowded;
  const backupKey = backupKeyOfCommand(config, secrets, serverHasRun(instance));
  if (isRefusal(backupKey)) return backupKey;
  return backUp(
    instance,
    async ({ withKeys, file, disagreesFile }, createdAt) => {
      const keys = withKeys ? readKeyFiles(data) : {};
      const encrypt =
        passphrase === null ? null : (from: string, to: string) => encryptFile(from, to, passphrase);
      const means = { keys, backupKey, encrypt };
      const bytes = await writeBackup(data, { file, disagreesFile }, createdAt, means);
      if (isRefusal(bytes)) return bytes;
      return { bytes, keys: keyFilesIn(keys), encrypted: encrypt !== null, keyId: keyIdOf(backupKey) };
    },
    input,
    Date.now(),
  );
}

/** The copy that is to be encrypted is made beside the ledger, and must leave it the space that it needs. */
function refuseCrowded(data: string): Refusal | null {
  const files = [ledgerFile(data), `${ledgerFile(data)}-wal`];
  const needed = files.reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0);
  const free = freeBytesOf(data);
  return free === null || free >= needed + FREE_BYTES_MIN_OF_SANDBOX
    ? null
    : refuseField(
        "HOLDFAST_DATA",
        `${data} has ${free} bytes free, and an encrypted backup needs ${needed + FREE_BYTES_MIN_OF_SANDBOX} there while it is made`,
      );
}

/**
 * Puts a backup into the data folder, which must be empty or missing, apart from the key of backups.
 *
 * @param usual the data folder that the environment names: its key of backups is tried too
 */
export async function restoreFolder(
  { data }: Config,
  secrets: Secrets,
  usual: string,
  input: RestoreInput,
): Promise<RestoreResource | Refusal> {
  const backupKeys = backupKeysOfRestore(input.key, secrets, [data, usual]);
  if (isRefusal(backupKeys)) return backupKeys;
  const passphrase = passphraseOf(input.passphrase, secrets);
  if (isRefusal(passphrase)) return passphrase;
  const newId = createIds(Date.now, random40);
  return restoreFrom(
    async ({ file, despiteAudit, unverified }, restoredAt) => {
      const restored = await restoreBackup({ file, despiteAudit, unverified }, data, restoredAt, {
        backupKeys,
        decrypt: (path) => decryptInPlace(path, passphrase),
        keepKeys: (folder, { keys, verifiedBy }) => [
          ...writeKeyFiles(folder, keys),
          ...keepBackupKey(
            folder,
            data,
            secrets,
            backupKeys.find((key) => keyIdOf(key) === verifiedBy),
          ),
        ],
        newAuditEntryId: () => newId("auditEntry"),
        version: packageJson.version,
      });
      return isRefusal(restored) ? restored : { ...restored, keys: keyFilesIn(restored.keys) };
    },
    { ...input, dataFolder: data },
    Date.now(),
  );
}

/** A folder that is restored goes on with the key of its backups, unless it has one, or the environment does. */
function keepBackupKey(
  folder: string,
  data: string,
  { backupKey }: Secrets,
  key: Uint8Array | undefined,
): readonly string[] {
  if (!key || backupKey || existsSync(join(data, BACKUP_KEY_FILE))) return [];
  writeBackupKey(folder, key);
  return [BACKUP_KEY_FILE];
}

/**
 * The nightly backups of a server, where the configuration asks for them.
 *
 * @param command how this executable is started
 */
export function backupJobs(
  { data, backups }: Config,
  command: readonly string[],
): { readonly jobs: readonly Job[]; newestBackup(): NewestBackup | null; stop(): void } {
  if (!backups) return { jobs: [], newestBackup: () => null, stop: () => {} };
  const child = createBackupChild(command, data);
  const { run, newest } = nightlyBackup(backups, child.make, Date.now);
  // A backup may take long, and a server without a fresh one can still serve. So this job never counts as stuck.
  const patienceMs = Number.POSITIVE_INFINITY;
  return {
    // The folder of a ledger has one server.
    jobs: [
      { name: BACKUP_JOB, doneBy: "each", everyMs: 15 * MINUTE_MS, firstMs: 10 * SECOND_MS, patienceMs, run },
    ],
    newestBackup: newest,
    stop: child.stop,
  };
}
