import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import {
  type BackupSchedule,
  backupName,
  isBackupDue,
  newestBackupAt,
  surplusBackups,
} from "../core/backup-schedule.ts";

/** Makes the backups of a schedule. */
export type NightlyBackup = {
  /**
   * Makes the night's backup where it is missing, also after a restart, and then removes those that are too many. It is called
   * again and again, and answers whether it made one. It rejects where the backup failed, and then removes nothing.
   */
  run(): Promise<boolean>;
  /** When the newest backup was made, epoch milliseconds, at the last run; 0 where there was none, null before the first run. */
  newestAt(): number | null;
};

/** @param make makes one backup, in a file that does not exist yet */
export function nightlyBackup(
  schedule: BackupSchedule,
  make: (file: string) => Promise<void>,
  now: () => number,
): NightlyBackup {
  const { folder } = schedule;
  let newestAt: number | null = null;
  return {
    newestAt: () => newestAt,
    async run() {
      const time = now();
      // Where the folder cannot be read, this stays 0: nobody could restore a backup from it.
      let newest = 0;
      try {
        // A missing folder is not made: most often its disk is not mounted.
        const found = await readdir(folder);
        newest = newestBackupAt(found, time);
        if (!isBackupDue(found, schedule, time)) return false;
        await make(join(folder, backupName(time)));
        const names = await readdir(folder);
        newest = newestBackupAt(names, time);
        for (const name of surplusBackups(names, schedule, time)) {
          await rm(join(folder, name), { force: true });
        }
        return true;
      } finally {
        // Set once, at the end of a run: during a run the answer must not be that there is no backup.
        newestAt = newest;
      }
    },
  };
}
