import { Database } from "bun:sqlite";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Refusal, refuseField } from "../../core/errors.ts";

/** Held by the one server of a data folder. */
export type ServerLock = { release(): void };

/**
 * Takes the folder for one server: recovery at start undoes every check that is under way. Refused where another has it, and
 * where its lock cannot be written. The lock is a transaction, which ends with its process however that ends; commands beside
 * the server do not ask for it.
 */
export function lockForServer(dataFolder: string): ServerLock | Refusal {
  mkdirSync(dataFolder, { recursive: true, mode: 0o700 });
  const file = join(dataFolder, "server.lock");
  let database: Database | null = null;
  try {
    database = new Database(file, { create: true, readwrite: true });
    // Else the write below would leave a journal beside it.
    database.run("PRAGMA journal_mode = MEMORY");
    database.run("BEGIN EXCLUSIVE");
    // A file that may only be read is opened all the same, and its transaction locks out nobody.
    database.run("PRAGMA user_version = 1");
  } catch (error) {
    database?.close();
    const { code, message } = error as { code?: unknown; message?: unknown };
    return refuseField(
      "HOLDFAST_DATA",
      code === "SQLITE_BUSY"
        ? `another server runs on ${dataFolder}; stop it first, or choose another folder`
        : `${file} cannot be locked, and without that a second server might start (${message})`,
    );
  }
  const held = database;
  return { release: () => held.close() };
}
