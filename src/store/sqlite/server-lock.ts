import { Database } from "bun:sqlite";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

/** Held by the one server of a data folder. */
export type ServerLock = { release(): void };

/**
 * Takes the folder for one server, or answers null where another has it: recovery at start undoes every check that is under
 * way. The lock is a transaction, which ends with its process however that ends; commands beside the server do not ask for it.
 */
export function lockForServer(dataFolder: string): ServerLock | null {
  mkdirSync(dataFolder, { recursive: true, mode: 0o700 });
  const database = new Database(join(dataFolder, "server.lock"), { create: true });
  try {
    database.run("BEGIN EXCLUSIVE");
  } catch {
    database.close();
    return null;
  }
  return { release: () => database.close() };
}
