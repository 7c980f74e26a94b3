import { SQLiteError } from "bun:sqlite";
import { existsSync, lstatSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { SQL } from "bun";
import { isRefusal, refuseField } from "../../core/errors.ts";
import { FREE_BYTES_MIN } from "../../core/operation.ts";
import { auditQuickly } from "../sqlite/audit-threads.ts";
import { ledgerFile } from "../sqlite/ledger-file.ts";
import { type FolderLock, lockFolder } from "../sqlite/server-lock.ts";
import { type CopiedRows, copyRows } from "./copy-rows.ts";
import { createLedgerFile } from "./ledger-file-rows.ts";
import { type Ask, askOn, rowsOfPostgres } from "./ledger-rows.ts";
import { ledgerTables } from "./ledger-tables.ts";
import type { Replicas } from "./replicas.ts";
import { schemaDisagreements } from "./schema.ts";

type OnProgress = (done: number, total: number) => void;

/** Audits the ledger of a folder, one message for each disagreement. */
type AuditFolder = (folder: string, onProgress: OnProgress) => Promise<readonly string[]>;

const auditRows: AuditFolder = (folder, onProgress) => auditQuickly(folder, { onProgress });

/** Where the copies of a ledger are made that are audited. */
export type CopyPlace = {
  readonly folder: string;
  /** The bytes that may still be used there; null where the system does not say. */
  freeBytes(): number | null;
};

/**
 * Audits a ledger in PostgreSQL: whether its tables and their guards are as Holdfast makes them, and then a copy of one moment of all
 * its rows, in a file of SQLite, as every ledger is audited. Others may write meanwhile. The rows come from a replica where there is
 * one with all of them. The copy takes at most as much space as the ledger, and is removed at the end. It takes little memory.
 *
 * @param onProgress is called with how much is done, and how much there is to do
 * @throws a refusal where the copy may not fit
 */
export async function auditPostgres(
  sql: SQL,
  place: CopyPlace,
  onProgress: OnProgress = () => {},
  audit = auditRows,
  onReplica: Replicas["alone"] = async () => null,
): Promise<readonly string[]> {
  const connection = await sql.reserve();
  try {
    const ask = askOn(connection);
    refuseMissing(place);
    await refuseCrowded(ask, place);
    const inSchema = await inTransaction(ask, "BEGIN READ ONLY", () => schemaDisagreements(connection));
    const auditMoment = async (from: Ask, before = async () => {}) => {
      const { problems } = await auditCopy(place.folder, onProgress, copyOfMoment(from, before), audit);
      return problems;
    };
    const ofReplica = await onReplica(async (replica, name, mustHaveAll) =>
      (await auditMoment(replica, mustHaveAll)).map((problem) => `${problem} (in the replica ${name})`),
    );
    return [...inSchema, ...(ofReplica ?? (await auditMoment(ask)))];
  } finally {
    connection.release();
  }
}

/**
 * Copies all rows of one moment.
 *
 * @param before fails where the transaction does not see what it must
 */
function copyOfMoment(ask: Ask, before: () => Promise<void>) {
  return (file: string, copying: OnProgress) =>
    inTransaction(ask, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", async () => {
      await before();
      return copyToFile(ask, file, copying);
    });
}

/** @throws a refusal where there is no such folder */
function refuseMissing({ folder }: CopyPlace): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  throw refuseField(
    "HOLDFAST_AUDIT_FOLDER",
    `there is no folder ${folder}, in which the ledger is copied to be audited`,
  );
}

/** What the ledger's tables take, with their indexes: a file of SQLite never takes more for the same rows. */
const BYTES = `
  SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::int8 FROM pg_class
  WHERE relnamespace = current_schema()::text::regnamespace AND relkind = 'r'`;

/** @throws a refusal that says how much is free, and how much the copy needs */
async function refuseCrowded(ask: Ask, { folder, freeBytes }: CopyPlace): Promise<void> {
  const [[bytes] = []] = await ask(BYTES);
  const needed = Number(bytes) + FREE_BYTES_MIN;
  const free = freeBytes();
  if (free === null || free >= needed) return;
  throw refuseField(
    "HOLDFAST_AUDIT_FOLDER",
    `${folder} has ${free} bytes free, and the copy of the ledger that is audited may need ${needed}: name a folder with more space`,
  );
}

/** Runs work that only reads in a transaction of its own, which may take as long as it needs. */
export async function inTransaction<Result>(
  ask: Ask,
  begin: string,
  work: () => Promise<Result>,
): Promise<Result> {
  await ask(begin);
  try {
    await ask("SET LOCAL statement_timeout = 0");
    await ask("SET LOCAL idle_in_transaction_session_timeout = 0");
    return await work();
  } finally {
    await ask("ROLLBACK").catch(() => {
      // The connection is lost, and its transaction with it.
    });
  }
}

const COPY = "holdfast-audit.";

/**
 * Removes the copies of audits that ended early, such as by SIGKILL. Whoever makes a copy has its lock. What belongs to another user, or
 * is no folder, is left.
 */
export function removeLeftCopies(folder: string): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (!name.startsWith(COPY) || !isOwnFolder(path)) continue;
    const lock = lockFolder(path);
    if (isRefusal(lock)) continue;
    try {
      // Who has just made it could lock a new file in it, while what is in it is removed.
      const left = `${path}.left`;
      renameSync(path, left);
      rmSync(left, { recursive: true, force: true });
    } catch (error) {
      // Another has removed it.
      if ((error as { readonly code?: unknown }).code !== "ENOENT") throw error;
    } finally {
      lock.release();
    }
  }
}

function isOwnFolder(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found?.isDirectory() === true && found.uid === process.getuid?.();
}

/** How often a new folder is made: another audit may take one for a copy that was left, until its lock is held. */
const TRIES_MAX = 10;

/** Makes a folder for a copy, with its lock. @throws a refusal where it cannot be locked */
function makeCopyFolder(folder: string): { readonly made: string; readonly lock: FolderLock } {
  for (let tries = 1; ; tries++) {
    const made = mkdtempSync(join(folder, COPY));
    const lock = lockFolder(made);
    // The lock may be that of a file that is gone. Who removes a folder has its lock until then, so one that is there stays.
    if (!isRefusal(lock) && existsSync(made)) return { made, lock };
    rmSync(made, { recursive: true, force: true });
    if (!isRefusal(lock)) lock.release();
    else if (tries === TRIES_MAX) throw lock;
  }
}

/** What the audit of a copy says, and what was copied; null where no ledger has such rows. */
export async function auditCopy(
  folder: string,
  onProgress: OnProgress,
  copy: (file: string, copying: OnProgress) => Promise<CopiedRows | string>,
  audit = auditRows,
): Promise<{ readonly problems: readonly string[]; readonly copied: CopiedRows | null }> {
  removeLeftCopies(folder);
  const { made, lock } = makeCopyFolder(folder);
  const [copying, auditing] = halvesOf(onProgress);
  try {
    const copied = await copy(ledgerFile(made), copying);
    if (typeof copied === "string") return { problems: [copied], copied: null };
    return { problems: await audit(made, auditing), copied };
  } finally {
    rmSync(made, { recursive: true, force: true });
    lock.release();
  }
}

/**
 * Makes a ledger of all rows that a transaction sees, in a new file.
 *
 * @returns what was copied; or why no ledger has such rows
 */
export async function copyToFile(
  ask: Ask,
  path: string,
  onProgress: OnProgress,
): Promise<CopiedRows | string> {
  const file = createLedgerFile(path);
  try {
    const copied = await copyRows(ledgerTables(), rowsOfPostgres(ask), file.target, onProgress);
    file.finish();
    return copied;
  } catch (error) {
    if (!(error instanceof SQLiteError)) throw error;
    return `its rows are not those of a ledger: ${error.message}`;
  } finally {
    file.close();
  }
}

/** The progress of work in two halves. How much there is in the second is known only when it begins. */
function halvesOf(onProgress: OnProgress): readonly [OnProgress, OnProgress] {
  let first = 0;
  return [
    (done, total) => {
      first = total;
      onProgress(done, 2 * total);
    },
    (done, total) => onProgress(first + Math.floor((done / Math.max(1, total)) * first), 2 * first),
  ];
}
