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

/** The files of a backup: one of them is made. */
export type BackupFiles = {
  readonly file: string;
  /** The file that is made instead where the audit of the copy disagrees. */
  readonly disagreesFile: string;
};

/**
 * Copies the ledger of a data folder into one file, mode 0600, while others go on writing. The copy is one
 * snapshot, with everything that was acknowledged before the call. The file gets its name only when it is
 * complete, on disk, and audited. Where the audit disagrees the copy is kept all the same, since it may be the
 * only one, and the refusal says so. Refused also where the file exists already or cannot be written.
 *
 * @param createdAt epoch milliseconds
 * @returns the file's size in bytes
 */
export function writeBackup(
  dataFolder: string,
  { file, disagreesFile }: BackupFiles,
  createdAt: number,
  keys: BackupKeys,
): number | Refusal {
  const taken = [file, disagreesFile].find(existsSync);
  if (taken !== undefined) return refuseTaken(taken);
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
    const problems = finishDraft(draft, createdAt, keys);
    const { size } = statSync(draft);
    const made = problems.length === 0 ? file : disagreesFile;
    if (!publishFile(draft, made)) return refuseTaken(made);
    return problems.length === 0 ? size : refuseDisagreeing(made, problems);
  } finally {
    for (const rest of [draft, `${draft}-journal`]) rmSync(rest, { force: true });
  }
}

const refuseTaken = (file: string): Refusal =>
  refuseField("file", `${file} is there already; a backup overwrites nothing`);

const refuseDisagreeing = (made: string, [problem, ...more]: readonly string[]): Refusal =>
  refuse(
    "audit_disagrees",
    `The backup is made, in ${made}, and its audit disagrees: ${problem}; ${more.length} more. \`holdfast audit\` lists them; \`holdfast restore --despite-audit\` takes it as it is.`,
  );

/**
 * Adds the backup's own tables, audits the copy, and adds the checksum.
 *
 * @returns what disagrees
 */
function finishDraft(draft: string, createdAt: number, keys: BackupKeys): readonly string[] {
  const raw = new Database(draft, { readwrite: true, safeIntegers: true });
  let problems: readonly string[];
  try {
    for (const table of BACKUP_TABLES) raw.run(table);
    raw.query("INSERT INTO backup (created_at) VALUES (?)").run(createdAt);
    const insert = raw.query("INSERT INTO backup_keys (name, text) VALUES (?, ?)");
    for (const [name, text] of Object.entries(keys)) insert.run(name, text);
    problems = auditLedger({ tables: drizzle(raw), raw });
  } finally {
    raw.close();
  }
  appendChecksum(draft);
  syncPath(draft);
  return problems;
}
