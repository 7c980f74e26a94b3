import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";

/** The keys of an instance, each in a file of the data folder that only its owner reads (decisions.md, Trace, log, receipts). */
export const KEY_FILES = { master: "master.key", signing: "signing.key" } as const;

/**
 * The text of a key's file. It is made where it is missing, whole or not at all: of two processes that start together one
 * makes it, and both read the same.
 */
export function keyFile(folder: string, name: string, make: () => string): string {
  const path = join(folder, name);
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}`;
  const file = openSync(draft, "w", 0o600);
  writeSync(file, `${make()}\n`);
  fsyncSync(file);
  closeSync(file);
  try {
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(draft);
  }
  return readFileSync(path, "utf8").trim();
}
