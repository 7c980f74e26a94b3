import { Database } from "bun:sqlite";
import { chmodSync } from "node:fs";
import { type BunSQLiteDatabase, drizzle } from "drizzle-orm/bun-sqlite";
import { OLDEST_WRITER } from "../sql/ledger-version.ts";
import type { MigrationWatch } from "../sql/migration-watch.ts";
import { ledgerFile } from "./ledger-file.ts";
import { keepVersion, newerLedger } from "./ledger-version.ts";
import { migrate, migrations } from "./migrate.ts";
import { makeFolder } from "./new-file.ts";

/** A connection: drizzle's view of it, and bun's own for pragmas and transactions. */
export type Connection = { readonly tables: BunSQLiteDatabase; readonly raw: Database };

/** How long opening waits for another process that brings the tables up to date. */
const OPENING_TIMEOUT_MS = 5_000;
/** How long a statement waits for another process's short transaction. It waits on the main thread: the queue tries again. */
const BUSY_TIMEOUT_MS = 20;

/**
 * Pages of the log before a commit copies them itself, 1 GB. That holds up every request for seconds. A server's job copies the log
 * long before, beside the requests; but while somebody reads for long, as a backup does, the log cannot be cut and grows.
 */
const AUTOCHECKPOINT_PAGES = 262_144;
/** A log that grew during a long read is cut to this once it starts anew. */
export const LOG_BYTES_KEPT = 64 * 1_024 * 1_024;

/** A connection to a ledger's file. */
export function connect(file: string, options: { readonly readonly: boolean }): Connection {
  // Without safeIntegers, amounts above 2^53 would be rounded in silence.
  const raw = new Database(
    file,
    options.readonly
      ? { readonly: true, safeIntegers: true }
      : { create: true, readwrite: true, safeIntegers: true },
  );
  raw.run(`PRAGMA busy_timeout = ${OPENING_TIMEOUT_MS}`);
  // What stands in the file itself may call no function that has effects outside of it.
  raw.run("PRAGMA trusted_schema = OFF");
  if (!options.readonly) {
    raw.run("PRAGMA journal_mode = WAL");
    raw.run("PRAGMA synchronous = FULL");
    raw.run(`PRAGMA wal_autocheckpoint = ${AUTOCHECKPOINT_PAGES}`);
    raw.run(`PRAGMA journal_size_limit = ${LOG_BYTES_KEPT}`);
    // Else what a statement or a savepoint may have to undo is written to a file of its own.
    raw.run("PRAGMA temp_store = MEMORY");
    // Else `INSERT OR REPLACE` deletes rows without the triggers that forbid it.
    raw.run("PRAGMA recursive_triggers = ON");
  }
  raw.run("PRAGMA foreign_keys = ON");
  raw.run("PRAGMA cache_size = -65536");
  return { tables: drizzle(raw), raw };
}

/**
 * Opens the ledger in a data folder for writing, making both where they are missing, and brings its tables up to date.
 *
 * @param version of this executable
 * @param newInstance what the instance is called where the ledger has none yet
 * @param watch follows the changes of the tables
 * @throws NewerLedger where the ledger is of a newer version that this one may not write to
 */
export function openLedger(
  dataFolder: string,
  version: string,
  newInstance: () => { readonly id: string; readonly createdAt: number },
  watch: Partial<MigrationWatch> = {},
): Connection {
  makeFolder(dataFolder);
  const file = ledgerFile(dataFolder);
  const writer = connect(file, { readonly: false });
  try {
    chmodSync(file, 0o600);
    const newer = newerLedger(writer.raw, version);
    if (newer) throw newer;
    migrate(writer.raw, migrations(), watch);
    ensureInstance(writer.raw, version, newInstance);
    keepVersion(writer.raw, version);
    writer.raw.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    return writer;
  } catch (error) {
    writer.raw.close();
    throw error;
  }
}

/** A ledger has one instance from the beginning, so that no command has to ask whether it is there. */
function ensureInstance(
  raw: Database,
  version: string,
  newInstance: () => { readonly id: string; readonly createdAt: number },
): void {
  const isThere = raw.query("SELECT 1 FROM instances").get() !== null;
  if (isThere) return;
  const { id, createdAt } = newInstance();
  // Of two processes that make a ledger together, one makes the instance.
  raw
    .query(
      "INSERT INTO instances (id, chain_ids, version, oldest_writer, created_at) SELECT ?, '[]', ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM instances)",
    )
    .run(id, version, OLDEST_WRITER, createdAt);
}
