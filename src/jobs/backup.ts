import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import {
  type BackupSchedule,
  backupName,
  disagreeingName,
  isBackupDue,
  type NewestBackup,
  newestBackup,
  surplusBackups,
} from "../core/backup-schedule.ts";

/** Makes the backups of a schedule. */
export type NightlyBackup = {
  /**
   * Makes last night's backup where it is missing, also after a restart, and then removes surplus backups. It
   * may be called again at any time, and answers whether it made one. It rejects where the backup failed;
   * then it removes nothing. It also rejects where the audit of the backup disagrees: the backup is kept, under
   * a name that says so.
   */
  run(): Promise<boolean>;
  /** The newest backup at the last run; null before the first run. */
  newest(): NewestBackup | null;
};

/**
 * Makes one backup, in one of two files that do not exist yet: the second one where its audit disagrees. Answers what
 * disagrees, or null.
 */
type Make = (file: string, disagreesFile: string) => Promise<string | null>;

const NONE: NewestBackup = { agreedAt: 0, disagrees: false };

export function nightlyBackup(schedule: BackupSchedule, make: Make, now: () => number): NightlyBackup {
  const { folder } = schedule;
  let known: NewestBackup | null = null;
  return {
    newest: () => known,
    async run() {
      const time = now();
      // Stays so where the folder cannot be read: nobody could restore a backup from it.
      let newest = NONE;
      try {
        // A missing folder is not created: most often its disk is not mounted.
        const found = await readdir(folder);
        newest = newestBackup(found, time);
        if (!isBackupDue(found, schedule, time)) return false;
        const disagreesFile = join(folder, disagreeingName(time));
        const disagreement = await make(join(folder, backupName(time)), disagreesFile);
        const names = await readdir(folder);
        newest = newestBackup(names, time);
        for (const name of surplusBackups(names, schedule, time)) {
          await rm(join(folder, name), { force: true });
        }
        if (disagreement !== null) throw new Error(disagreement);
        return true;
      } finally {
        // Set only at the end of a run. Otherwise the answer during a run would be that there is no backup.
        known = newest;
      }
    },
  };
}
