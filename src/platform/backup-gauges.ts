import { SECOND_MS } from "../core/time.ts";
import type { Figures } from "./figures.ts";
import type { MakeGauge } from "./gauge-makers.ts";

export function createBackupGauges(gauge: MakeGauge): (newest: Figures["newestBackup"]) => void {
  const newestBackup = gauge(
    "holdfast_backup_newest_timestamp_seconds",
    "When the newest nightly backup was made whose audit agreed; 0 where there is none. Missing until the backup folder has been read.",
  );
  const backupDisagrees = gauge(
    "holdfast_backup_disagrees",
    "1 where the audit of the newest nightly backup disagrees, else 0.",
  );
  // Without a backup folder, or before it was read, these series are missing, so that no alert fires.
  newestBackup.remove();
  backupDisagrees.remove();
  return (newest) => {
    if (newest === null) return;
    newestBackup.set(newest.agreedAt / SECOND_MS);
    backupDisagrees.set(newest.disagrees ? 1 : 0);
  };
}
