import type { Config } from "../config.ts";
import type { NewestBackup } from "../core/backup-schedule.ts";
import { isRefusal, type Refusal } from "../core/errors.ts";
import { MINUTE_MS, SECOND_MS } from "../core/time.ts";
import { nightlyBackup } from "../jobs/backup.ts";
import type { Job } from "../jobs/scheduler.ts";
import { createBackupChild } from "../platform/backup-child.ts";
import { keyFilesIn, readKeyFiles, writeKeyFiles } from "../platform/key-files.ts";
import {
  type BackupInput,
  type BackupResource,
  backUp,
  type RestoreInput,
  type RestoreResource,
  restoreFrom,
} from "../services/admin/backup.ts";
import type { Context } from "../services/context.ts";
import { writeBackup } from "../store/sqlite/backup.ts";
import { restoreBackup } from "../store/sqlite/restore.ts";

type Opened = { readonly ctx: Context; close(): Promise<void> };

/**
 * Copies the ledger of the data folder into a new file, and closes the opened ledger. A server may be running
 * on the folder.
 */
export async function backUpFolder(
  { data }: Config,
  { ctx, close }: Opened,
  input: BackupInput,
): Promise<BackupResource | Refusal> {
  // It is closed before the copy, which takes long: while a ledger is open for reading, its write-ahead log
  // only grows.
  const instance = await ctx.store.read((reader) => reader.instance.get()).finally(close);
  return backUp(
    instance,
    ({ withKeys, ...files }, createdAt) => {
      const keys = withKeys ? readKeyFiles(data) : {};
      const bytes = writeBackup(data, files, createdAt, keys);
      return isRefusal(bytes) ? bytes : { bytes, keys: keyFilesIn(keys) };
    },
    input,
    Date.now(),
  );
}

/** Puts a backup into the data folder, which must be empty or missing. */
export const restoreFolder = ({ data }: Config, input: RestoreInput): RestoreResource | Refusal =>
  restoreFrom(
    (from, restoredAt) => {
      const restored = restoreBackup(from, data, restoredAt, writeKeyFiles);
      return isRefusal(restored) ? restored : { ...restored, keys: keyFilesIn(restored.keys) };
    },
    { ...input, dataFolder: data },
    Date.now(),
  );

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
    jobs: [{ name: "backup", everyMs: 15 * MINUTE_MS, firstMs: 10 * SECOND_MS, patienceMs, run }],
    newestBackup: newest,
    stop: child.stop,
  };
}
