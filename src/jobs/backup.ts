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
   * Makes last night's backup where it is missing, also after a restart, and then removes surplus backups. It
   * may be called again at any time, and answers whether it made one. It rejects where the backup failed;
   * then it removes nothing.
   */
  run(): Promise<boolean>;
  /**
   * When the newest backup at the last run was made, epoch milliseconds; 0 where there was no backup, null
   * before the first run.
   */
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
      // Stays 0 where the folder cannot be read: nobody could restore a backup from it.
      let newest = 0;
      try {
        // A missing folder is not created: most often its disk is not mounted.
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
        // Set only at the end of a run. Otherwise the answer during a run would be that there is no backup.
        newestAt = newest;
      }
    },
  };
}
