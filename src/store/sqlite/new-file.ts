import { closeSync, existsSync, fsyncSync, linkSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";

/** Waits until what was written to a file, or which names are in a folder, is on disk. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Gives a finished draft its name, at once and never over another file. False where the name is taken; the draft stays then. */
export function publishFile(draft: string, file: string): boolean {
  try {
    linkSync(draft, file);
  } catch {
    if (existsSync(file)) return false;
    // Not every filesystem that a backup goes to has links.
    renameSync(draft, file);
  }
  rmSync(draft, { force: true });
  syncPath(dirname(file));
  return true;
}
