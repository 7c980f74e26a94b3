import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { BACKUP_KEY_FILE, type WITNESS_KEY_FILE } from "../core/instance.ts";

/** The keys of an instance that a backup may hold, each in a file of the data folder that only its owner may read (docs/operating, "The keys of the instance"). */
export const KEY_FILES = { master: "master.key", signing: "signing.key", push: "push.key" } as const;

export type KeyFileName = (typeof KEY_FILES)[keyof typeof KEY_FILES];

/**
 * The keys that are in no backup. Whoever had the key of backups could make others; and a witness that was restored may have
 * forgotten what it signed.
 */
export type UnsavedKeyFileName = typeof BACKUP_KEY_FILE | typeof WITNESS_KEY_FILE;

type AnyKeyFileName = KeyFileName | UnsavedKeyFileName;

const NAMES: readonly KeyFileName[] = Object.values(KEY_FILES);

/** The texts of key files, by the files' names. */
export type KeyTexts = Readonly<Record<string, string>>;

/** The names of the key files among these texts. */
export const keyFilesIn = (keys: KeyTexts): readonly KeyFileName[] => NAMES.filter((name) => name in keys);

/** The texts of the key files that the folder has. A key may also come from the environment; then it has no file. */
export const readKeyFiles = (folder: string): KeyTexts =>
  Object.fromEntries(
    NAMES.filter((name) => existsSync(join(folder, name))).map((name) => [
      name,
      readFileSync(join(folder, name), "utf8"),
    ]),
  );

/**
 * Writes the key files of a backup into a folder that has none of them, and answers their names. Throws where a name is not a
 * key file's: the backup gives the names.
 */
export function writeKeyFiles(folder: string, keys: KeyTexts): readonly string[] {
  const names = Object.keys(keys);
  for (const name of names) {
    if (!NAMES.some((known) => known === name))
      throw new Error(`${JSON.stringify(name)} is not the name of a key file`);
    writeDurably(join(folder, name), keys[name] ?? "", "wx");
  }
  return names;
}

/** Writes the key of backups into a folder that has none. */
export const writeBackupKey = (folder: string, key: Uint8Array): void =>
  writeDurably(join(folder, BACKUP_KEY_FILE), `${Buffer.from(key).toString("base64")}\n`, "wx");

function writeDurably(path: string, text: string, flags: "w" | "wx"): void {
  const file = openSync(path, flags, 0o600);
  writeSync(file, text);
  fsyncSync(file);
  closeSync(file);
}

/** The text of a key's file; null where there is none. */
export function readKeyFile(folder: string, name: AnyKeyFileName): string | null {
  try {
    return readFileSync(join(folder, name), "utf8").trim();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOENT" && code !== "ENOTDIR") throw error;
    return null;
  }
}

/**
 * The text of a key's file. Where the file is missing, it is made. It appears whole or not at all: of two processes that start
 * together one makes it, and both read the same text. It is on disk when this returns: after a power cut, what was encrypted
 * with the key must still be readable.
 */
export function keyFile(folder: string, name: AnyKeyFileName, make: () => string): string {
  const known = readKeyFile(folder, name);
  if (known !== null) return known;
  const path = join(folder, name);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}`;
  writeDurably(draft, `${make()}\n`, "w");
  try {
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(draft);
  }
  syncFolder(folder);
  return readFileSync(path, "utf8").trim();
}

function syncFolder(folder: string): void {
  const descriptor = openSync(folder, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
