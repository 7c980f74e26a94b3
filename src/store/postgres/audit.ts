import { SQLiteError } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { SQL } from "bun";
import { auditQuickly } from "../sqlite/audit-threads.ts";
import { ledgerFile } from "../sqlite/ledger-file.ts";
import { removeCutOff } from "../sqlite/new-file.ts";
import { type CopiedRows, copyRows } from "./copy-rows.ts";
import { createLedgerFile } from "./ledger-file-rows.ts";
import { type Ask, askOn, rowsOfPostgres } from "./ledger-rows.ts";
import { ledgerTables } from "./ledger-tables.ts";
import { schemaDisagreements } from "./schema.ts";

type OnProgress = (done: number, total: number) => void;

/**
 * Audits a ledger in PostgreSQL: whether its tables and their guards are as Holdfast makes them, and then a copy of one moment of all
 * its rows, in a file of SQLite, as every ledger is audited. Others may write meanwhile, and it may read from a replica. It takes as
 * much space as the ledger, and little memory.
 *
 * @param folder where the copy is made, and removed again
 * @param onProgress is called with how much is done, and how much there is to do
 */
export async function auditPostgres(
  sql: SQL,
  folder: string,
  onProgress: OnProgress = () => {},
): Promise<readonly string[]> {
  const connection = await sql.reserve();
  try {
    const ask = askOn(connection);
    const inSchema = await inTransaction(ask, "BEGIN", () => schemaDisagreements(connection));
    const { problems } = await auditCopy(folder, onProgress, (file, copying) =>
      inTransaction(ask, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", () =>
        copyToFile(ask, file, copying),
      ),
    );
    return [...inSchema, ...problems];
  } finally {
    connection.release();
  }
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

/** The copies that audits make, by the process that makes them. */
const COPY = /^audit\.(\d+)\.[^.]+$/;

/** What the audit of a copy says, and what was copied; null where no ledger has such rows. */
export async function auditCopy(
  folder: string,
  onProgress: OnProgress,
  copy: (file: string, copying: OnProgress) => Promise<CopiedRows | string>,
): Promise<{ readonly problems: readonly string[]; readonly copied: CopiedRows | null }> {
  removeCutOff(folder, COPY);
  const made = mkdtempSync(join(folder, `audit.${process.pid}.`));
  const [copying, auditing] = halvesOf(onProgress);
  try {
    const copied = await copy(ledgerFile(made), copying);
    if (typeof copied === "string") return { problems: [copied], copied: null };
    return { problems: await auditQuickly(made, { onProgress: auditing }), copied };
  } finally {
    rmSync(made, { recursive: true, force: true });
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
