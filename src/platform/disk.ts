import { statfsSync } from "node:fs";

/** The bytes on a folder's disk that this process may still use; null where the system does not say. */
export function freeBytesOf(folder: string): number | null {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return null;
  }
}
