import { cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ledgerFile } from "../../src/store/sqlite/ledger-file.ts";
import { migrate } from "../../src/store/sqlite/migrate.ts";
import { connect } from "../../src/store/sqlite/open.ts";
import { dropDatabase, newDatabase } from "./databases.ts";
import { ENGINE } from "./engine.ts";
import { runScript } from "./sync-sql.ts";
import { TEMPORARY } from "./temporary.ts";

/** The file of a migrated ledger without a row. A copy costs little beside migrating, and hundreds of tests need a ledger. */
let migrated: Uint8Array | null = null;

/** The addresses of the databases that were made for folders. */
const databases = new Map<string, string>();

/**
 * Makes a data folder with a ledger that has all tables and no row yet. On PostgreSQL the ledger is a database that belongs to it.
 *
 * @param root the folder that it is in
 */
export function newLedgerFolder(root = TEMPORARY): string {
  const folder = newFolder(root);
  if (ENGINE === "postgres") {
    makeDatabase(folder);
    return folder;
  }
  migrated ??= migratedFile();
  writeFileSync(ledgerFile(folder), migrated);
  return folder;
}

/** Makes the database that is the ledger of a folder, unless it is made: a process of its own needs it before anybody looks into it. */
export function makeDatabase(folder: string): void {
  if (!databases.has(folder)) databases.set(folder, newDatabase());
}

/** The address of the database that is the ledger of this folder. */
export function databaseOf(folder: string): string {
  const url = databases.get(folder);
  if (url === undefined) throw new Error(`no database was made for ${folder}`);
  return url;
}

const ENDED =
  "UPDATE leases SET until = clock_timestamp(); UPDATE instances_running SET seen_until = clock_timestamp()";

/** The servers of this folder were killed. Those that share a ledger believe for 20 s that they live: these seconds have passed now. */
export function takePlacesOfKilled(folder: string): void {
  if (ENGINE === "postgres") runScript(databaseOf(folder), ENDED);
}

/** Copies a data folder and its ledger, which nobody uses meanwhile. */
export function copyLedgerFolder(from: string, to: string): void {
  if (existsSync(from)) cpSync(from, to, { recursive: true });
  if (ENGINE === "postgres") databases.set(to, newDatabase(databaseOf(from)));
}

/** Removes a data folder and its ledger, which nobody may use any more. */
export function removeLedgerFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  const url = databases.get(folder);
  if (url === undefined) return;
  databases.delete(folder);
  dropDatabase(url);
}

const newFolder = (root: string): string => mkdtempSync(join(root, "holdfast-test-"));

function migratedFile(): Uint8Array {
  const folder = newFolder(TEMPORARY);
  const { raw } = connect(ledgerFile(folder), { readonly: false });
  migrate(raw);
  // What is in the write-ahead log is part of this too.
  const file = raw.serialize();
  raw.close();
  rmSync(folder, { recursive: true });
  return file;
}
