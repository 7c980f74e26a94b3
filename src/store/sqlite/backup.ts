import { Database } from "bun:sqlite";
import { closeSync, existsSync, openSync, rmSync, statSync } from "node:fs";
import { drizzle } from "drizzle-orm/bun-sqlite";
import { type Refusal, refuse, refuseField } from "../../core/errors.ts";
import { auditLedger } from "./audit.ts";
import { appendChecksum } from "./checksum.ts";
import { ledgerFile } from "./ledger-file.ts";
import { publishFile, syncPath } from "./new-file.ts";

/** The texts of key files by their names. A backup contains them unencrypted. */
export type BackupKeys = Readonly<Record<string, string>>;

/** The tables that a backup has besides those of the ledger. */
const BACKUP_TABLES = [
  "CREATE TABLE backup (created_at INTEGER NOT NULL) STRICT",
  "CREATE TABLE backup_keys (name TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT",
];

/**
 * How long the copy waits for another process's lock. Readers need to wait only while another process opens
 * the ledger.
 */
const BUSY_TIMEOUT_MS = 5_000;

/**
 * Copies the ledger of a data folder into one file, mode 0600, while others go on writing. The copy is one
 * snapshot, with everything that was acknowledged before the call. The file gets its name only when it is
 * complete, on disk, and has passed the audit. Refused where the file exists already or cannot be written.
 *
 * @param createdAt epoch milliseconds
 * @returns the file's size in bytes
 */
export function writeBackup(
  dataFolder: string,
  file: string,
  createdAt: number,
  keys: BackupKeys,
): number | Refusal {
  if (existsSync(file)) return refuseTaken(file);
  const draft = `${file}.${process.pid}.part`;
  try {
    // The file is created with its mode before anything is written, so that nobody else can ever read it.
    closeSync(openSync(draft, "w", 0o600));
  } catch (error) {
    return refuseField("file", `${file} cannot be written (${(error as Error).message})`);
  }
  try {
    const ledger = new Database(ledgerFile(dataFolder), { readonly: true, safeIntegers: true });
    try {
      ledger.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
      ledger.query("VACUUM INTO ?").run(draft);
    } finally {
      ledger.close();
    }
    const refused = finishDraft(draft, createdAt, keys);
    if (refused) return refused;
    const { size } = statSync(draft);
    return publishFile(draft, file) ? size : refuseTaken(file);
  } finally {
    for (const rest of [draft, `${draft}-journal`]) rmSync(rest, { force: true });
  }
}

const refuseTaken = (file: string): Refusal =>
  refuseField("file", `${file} is there already; a backup overwrites nothing`);

/** Adds the backup's own tables, audits the copy, and adds the checksum. */
function finishDraft(draft: string, createdAt: number, keys: BackupKeys): Refusal | null {
  const raw = new Database(draft, { readwrite: true, safeIntegers: true });
  try {
    for (const table of BACKUP_TABLES) raw.run(table);
    raw.query("INSERT INTO backup (created_at) VALUES (?)").run(createdAt);
    const insert = raw.query("INSERT INTO backup_keys (name, text) VALUES (?, ?)");
    for (const [name, text] of Object.entries(keys)) insert.run(name, text);
    const [problem, ...more] = auditLedger({ tables: drizzle(raw), raw });
    if (problem !== undefined) {
      return refuse(
        "internal_error",
        `The audit of the copy fails, so it was not kept: ${problem}; ${more.length} more. \`holdfast audit\` lists them.`,
      );
    }
  } finally {
    raw.close();
  }
  appendChecksum(draft);
  syncPath(draft);
  return null;
}
