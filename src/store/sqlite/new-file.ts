import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";

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

/**
 * Removes what processes that were killed left in a folder.
 *
 * @param pattern of the names; its first group is the process's id
 */
export function removeCutOff(folder: string, pattern: RegExp): void {
  for (const name of readdirSync(folder)) {
    const [, pid] = pattern.exec(name) ?? [];
    if (pid !== undefined && !isRunning(Number(pid)))
      rmSync(join(folder, name), { recursive: true, force: true });
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}
