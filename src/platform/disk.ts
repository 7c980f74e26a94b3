import { statfsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { logWarning } from "./log.ts";

/** The bytes on a folder's disk that this process may still use; null where the system does not say. */
export function freeBytesOf(folder: string): number | null {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return null;
  }
}

const OF_OTHERS = 0o077;

/** Warns where other users of the machine may look into the data folder, and says what to type. */
export function warnOfOpenFolder(folder: string): void {
  const mode = statSync(folder).mode & 0o777;
  if ((mode & OF_OTHERS) === 0) return;
  const path = resolve(folder);
  const typed = /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
  logWarning(`other users of this machine may look into the data folder: type chmod 700 ${typed}`, {
    data_folder: path,
    mode: mode.toString(8).padStart(3, "0"),
  });
}
