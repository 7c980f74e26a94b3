import { statfsSync } from "node:fs";

/** What is left for us on the disk of a folder, in bytes; null where the system does not say. */
export function freeBytesOf(folder: string): number | null {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return null;
  }
}
