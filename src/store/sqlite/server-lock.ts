import { Database } from "bun:sqlite";
import { chmodSync, closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { type Refusal, refuseField } from "../../core/errors.ts";
import { makeFolder } from "./new-file.ts";

/** The lock of the only process on a folder. */
export type FolderLock = { release(): void };

/**
 * Locks the folder for one server. A second server would undo the running checks of the first, since recovery
 * at the start undoes all of them. Refused where another server has the lock, or where it cannot be written.
 * The lock is a transaction, so it ends with its process in any case. Commands that run beside the server do
 * not need it.
 */
export function lockForServer(dataFolder: string): FolderLock | Refusal {
  makeFolder(dataFolder);
  return lockFolder(dataFolder);
}

/** Locks a folder that is there, in the same way. Refused where it is not. */
export function lockFolder(folder: string): FolderLock | Refusal {
  const file = join(folder, "server.lock");
  let database: Database | null = null;
  try {
    // Whoever can open it can lock it, and so keep a server from starting.
    closeSync(openSync(file, "a", 0o600));
    chmodSync(file, 0o600);
    database = new Database(file, { create: true, readwrite: true });
    // Otherwise the write below would leave a journal file.
    database.run("PRAGMA journal_mode = MEMORY");
    database.run("BEGIN EXCLUSIVE");
    // A read-only file can be opened too, but a transaction on it would lock out nobody. This write fails
    // there.
    database.run("PRAGMA user_version = 1");
  } catch (error) {
    database?.close();
    const { code, message } = error as { code?: unknown; message?: unknown };
    return refuseField(
      "HOLDFAST_DATA",
      code === "SQLITE_BUSY"
        ? `another server runs on ${folder}; stop it first, or choose another folder`
        : `${file} cannot be locked, and without that a second server might start (${message})`,
    );
  }
  const held = database;
  return { release: () => held.close() };
}
