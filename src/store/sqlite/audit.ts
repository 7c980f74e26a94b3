import { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { auditDeposits } from "./audit/deposits.ts";
import { auditDirectory } from "./audit/directory.ts";
import { auditPostings } from "./audit/postings.ts";
import { auditPurchases } from "./audit/purchases.ts";
import { guarded } from "./audit/rows.ts";
import { auditScopes } from "./audit/scopes.ts";
import { auditWarrants } from "./audit/warrants.ts";
import { ledgerFile } from "./ledger-file.ts";
import { type Connection, connect } from "./open.ts";

/** Where so much is wrong, more messages help nobody. */
const MESSAGES_MAX = 1_000;

/**
 * Audits the ledger in a data folder, which others may read and write meanwhile.
 *
 * @param fileBytesMax a longer file is audited without a check of its pages, indexes and CHECKs. That check cannot be divided:
 *   it reads for seconds for each gigabyte, and meanwhile the write-ahead log grows and cannot be cut
 */
export function auditFolder(dataFolder: string, fileBytesMax = Number.POSITIVE_INFINITY): readonly string[] {
  const file = ledgerFile(dataFolder);
  const reader = connect(file, { readonly: true });
  try {
    return auditLedger(reader, statSync(file).size <= fileBytesMax);
  } finally {
    reader.raw.close();
  }
}

/**
 * Every disagreement of the ledger with itself, one message each: the file, the money, the warrants with their traces, the
 * purchases, and what they refer to. Each part is read in slices, and each slice is one moment: so it is right beside a running
 * server, its memory is bounded, and it holds no snapshot for long; but for the check of the file.
 */
export function auditLedger({ raw }: Connection, checksFile = true): readonly string[] {
  const messages: string[] = [];
  for (const message of disagreements(raw, checksFile)) {
    messages.push(message);
    if (messages.length === MESSAGES_MAX) break;
  }
  return messages;
}

/** Each part is read even where another one cannot be. */
function* disagreements(raw: Database, checksFile: boolean): Generator<string> {
  if (checksFile) yield* guarded("the file", () => auditFile(raw));
  yield* guarded("the postings", () => auditPostings(raw));
  yield* guarded("the deposits", () => auditDeposits(raw));
  yield* guarded("the scopes", () => auditScopes(raw));
  yield* guarded("the warrants", () => auditWarrants(raw));
  yield* guarded("the purchases", () => auditPurchases(raw));
  yield* guarded("the directory", () => auditDirectory(raw));
}

type ForeignKeyViolation = { readonly table: string; readonly rowid: bigint | null; readonly parent: string };

/** The pages and indexes, the CHECKs of every row, and the references between rows. */
function* auditFile(raw: Database): Generator<string> {
  // A read-only connection does not even read the CHECKs of the tables: this one could write, and is told not to.
  const reader = new Database(raw.filename, { readwrite: true, safeIntegers: true });
  try {
    reader.run("PRAGMA query_only = ON");
    const problems = reader.query<{ integrity_check: string }, []>("PRAGMA integrity_check(100)");
    for (const { integrity_check: problem } of problems.iterate()) {
      if (problem !== "ok") yield `the file: ${problem}`;
    }
  } finally {
    reader.close();
  }
  const references = raw.query<ForeignKeyViolation, []>("PRAGMA foreign_key_check");
  for (const { table, rowid, parent } of references.iterate()) {
    yield `the file: row ${rowid} of ${table} refers to a row of ${parent} that is not there`;
  }
}
