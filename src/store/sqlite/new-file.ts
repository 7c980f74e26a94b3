import { closeSync, existsSync, fsyncSync, linkSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";

/** Waits until a file's content, or a folder's list of names, is on disk. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Gives a finished draft its final name in one step, and never over another file. False where the name is
 * taken; the draft then stays.
 */
export function publishFile(draft: string, file: string): boolean {
  try {
    linkSync(draft, file);
  } catch {
    if (existsSync(file)) return false;
    // Some filesystems for backups have no hard links.
    renameSync(draft, file);
  }
  rmSync(draft, { force: true });
  syncPath(dirname(file));
  return true;
}
