import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { type BackupSchedule, backupName, isBackupDue, surplusBackups } from "../core/backup-schedule.ts";

/**
 * Makes the night's backup where it is missing, also after a restart, and then removes what is more than may stay. Called
 * again and again; rejects where the backup failed, and removes nothing then.
 *
 * @param make makes one backup, in a file that is not there yet
 * @returns whether it made one
 */
export function nightlyBackup(
  schedule: BackupSchedule,
  make: (file: string) => Promise<void>,
  now: () => number,
): () => Promise<boolean> {
  const { folder } = schedule;
  return async () => {
    const time = now();
    // The folder is not made: one that is missing is most often a disk that is not there.
    if (!isBackupDue(await readdir(folder), schedule, time)) return false;
    await make(join(folder, backupName(time)));
    for (const name of surplusBackups(await readdir(folder), schedule, time)) {
      await rm(join(folder, name), { force: true });
    }
    return true;
  };
}
