import { Database } from "bun:sqlite";
import { closeSync, existsSync, openSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { drizzle } from "drizzle-orm/bun-sqlite";
import { type Refusal, refuse, refuseField } from "../../core/errors.ts";
import { firstOf } from "../../core/first-of.ts";
import { auditLedger } from "./audit.ts";
import { appendLastLine } from "./last-line.ts";
import { ledgerFile } from "./ledger-file.ts";
import { publishFile, removeCutOff, syncPath } from "./new-file.ts";
import { schemaDisagreements } from "./schema.ts";

/** The texts of key files by their names. A backup contains them unencrypted. */
export type BackupKeys = Readonly<Record<string, string>>;

/** The tables that a backup has besides those of the ledger. */
export const BACKUP_TABLES = [
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

/** What a backup is made with. */
export type BackupMeans = {
  /** The texts of the key files that go into it. */
  readonly keys: BackupKeys;
  /** The key that authenticates it: 32 bytes. It never goes into a backup. */
  readonly backupKey: Uint8Array;
  /** Encrypts a file into another one, which is there and empty; null where the backup is not encrypted. */
  readonly encrypt: ((from: string, to: string) => Promise<void>) | null;
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
export async function writeBackup(
  dataFolder: string,
  { file, disagreesFile }: BackupFiles,
  createdAt: number,
  { keys, backupKey, encrypt }: BackupMeans,
): Promise<number | Refusal> {
  const taken = [file, disagreesFile].find(existsSync);
  if (taken !== undefined) return refuseTaken(taken);
  const draft = `${file}.${process.pid}.part`;
  // What is to be encrypted is never on the backup's disk in the clear: that disk may be somebody else's.
  const copy = encrypt ? join(dataFolder, `backup.${process.pid}.part`) : draft;
  removeCutOff(dataFolder, COPY);
  try {
    // The files are created with their mode before anything is written, so that nobody else can ever read them.
    for (const path of new Set([draft, copy])) closeSync(openSync(path, "w", 0o600));
  } catch (error) {
    return refuseField("file", `${file} cannot be written (${(error as Error).message})`);
  }
  try {
    copyLedger(dataFolder, copy);
    const problems = finishCopy(copy, createdAt, keys);
    await encrypt?.(copy, draft);
    appendLastLine(draft, backupKey);
    syncPath(draft);
    const { size } = statSync(draft);
    const made = problems.length === 0 ? file : disagreesFile;
    if (!publishFile(draft, made)) return refuseTaken(made);
    return problems.length === 0 ? size : refuseDisagreeing(made, problems);
  } finally {
    for (const path of [draft, copy, `${copy}-journal`]) rmSync(path, { force: true });
  }
}

/** The copy of a ledger that is to be encrypted, by the process that makes it. */
const COPY = /^backup\.(\d+)\.part(-journal)?$/;

function copyLedger(dataFolder: string, copy: string): void {
  const ledger = new Database(ledgerFile(dataFolder), { readonly: true, safeIntegers: true });
  try {
    ledger.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    ledger.query("VACUUM INTO ?").run(copy);
  } finally {
    ledger.close();
  }
}

const refuseTaken = (file: string): Refusal =>
  refuseField("file", `${file} is there already; a backup overwrites nothing`);

const refuseDisagreeing = (made: string, problems: readonly string[]): Refusal =>
  refuse(
    "audit_disagrees",
    `The backup is made, in ${made}, and its audit disagrees: ${firstOf(problems)}. \`holdfast audit\` lists them. \`holdfast restore --despite-audit\` takes it as it is, but never with tables or guards that Holdfast did not make.`,
  );

/**
 * Adds the backup's own tables, and audits the copy. A restore refuses a schema that is not a ledger's, so that is looked for now.
 *
 * @returns what disagrees
 */
function finishCopy(copy: string, createdAt: number, keys: BackupKeys): readonly string[] {
  const raw = new Database(copy, { readwrite: true, safeIntegers: true });
  try {
    for (const table of BACKUP_TABLES) raw.run(table);
    raw.query("INSERT INTO backup (created_at) VALUES (?)").run(createdAt);
    const insert = raw.query("INSERT INTO backup_keys (name, text) VALUES (?, ?)");
    for (const [name, text] of Object.entries(keys)) insert.run(name, text);
    return [...schemaDisagreements(raw, BACKUP_TABLES), ...auditLedger({ tables: drizzle(raw), raw })];
  } finally {
    raw.close();
  }
}
