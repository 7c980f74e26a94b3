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
   * Makes the night's backup where it is missing, also after a restart, and then removes what is more than may stay. Called
   * again and again; rejects where the backup failed, and removes nothing then. Whether it made one.
   */
  run(): Promise<boolean>;
  /** When the newest was made, epoch milliseconds, as the last run left it; 0 where there was none, null before a run has ended. */
  newestAt(): number | null;
};

/** @param make makes one backup, in a file that is not there yet */
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
      // A folder that cannot be read has no backup that anybody could restore.
      let newest = 0;
      try {
        // The folder is not made: one that is missing is most often a disk that is not there.
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
        // Once a run: whoever asks while it reads the folder must not hear that there is none.
        newestAt = newest;
      }
    },
  };
}
