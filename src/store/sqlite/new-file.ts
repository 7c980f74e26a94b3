import { closeSync, existsSync, fsyncSync, linkSync, mkdirSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname, resolve } from "node:path";

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
 * Makes a data folder where it is missing, with the folders above it, which nobody else may read. It is on disk when this
 * returns: what is synced in a folder is lost with the folder's own name.
 */
export function makeFolder(folder: string): void {
  const first = mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  for (let made = resolve(folder); made !== dirname(resolve(first)); made = dirname(made))
    syncPath(dirname(made));
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
