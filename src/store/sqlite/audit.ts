import { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { auditAnchors } from "./audit/anchors.ts";
import { auditCapsules } from "./audit/capsules.ts";
import { auditDeposits } from "./audit/deposits.ts";
import { auditDigests } from "./audit/digests.ts";
import { auditDirectory } from "./audit/directory.ts";
import { auditKept } from "./audit/kept.ts";
import { auditLog } from "./audit/log.ts";
import { auditPostings } from "./audit/postings.ts";
import { auditPurchases } from "./audit/purchases.ts";
import { auditReferences } from "./audit/references.ts";
import { guarded } from "./audit/rows.ts";
import { auditScopes } from "./audit/scopes.ts";
import { auditWarrants } from "./audit/warrants.ts";
import { ledgerFile } from "./ledger-file.ts";
import { type Connection, connect } from "./open.ts";
import { schemaDisagreements } from "./schema.ts";

/** After so many messages the audit ends, since more would not help anybody. */
const MESSAGES_MAX = 1_000;

/**
 * Audits the ledger in a data folder, and whether its tables and their guards are as Holdfast makes them. Others may read and write it meanwhile.
 *
 * @param fileBytesMax in a longer file, pages, indexes and CHECKs are not checked. That check cannot be
 *   split: it reads for seconds for each gigabyte, and meanwhile the write-ahead log only grows
 */
export function auditFolder(dataFolder: string, fileBytesMax = Number.POSITIVE_INFINITY): readonly string[] {
  const file = ledgerFile(dataFolder);
  const reader = connect(file, { readonly: true });
  try {
    return [
      ...guarded("the tables", () => schemaDisagreements(reader.raw)),
      ...auditLedger(reader, statSync(file).size <= fileBytesMax),
    ].slice(0, MESSAGES_MAX);
  } finally {
    reader.raw.close();
  }
}

/**
 * Every disagreement of the ledger with itself, one message each: in the file, the money, the warrants and
 * their traces, the purchases, the capsules, and what they refer to. It is correct beside a running server, since each part
 * is read in slices, each from one snapshot. That also limits its memory and the life of each snapshot. Only
 * the check of the file is not sliced.
 */
export function auditLedger({ raw }: Connection, checksFile = true): readonly string[] {
  const messages: string[] = [];
  for (const message of disagreements(raw, checksFile)) {
    messages.push(message);
    if (messages.length === MESSAGES_MAX) break;
  }
  return messages;
}

/** The parts are independent: each is audited even where another one cannot be read. */
function* disagreements(raw: Database, checksFile: boolean): Generator<string> {
  if (checksFile) yield* guarded("the file", () => auditFile(raw));
  yield* guarded("the references", () => auditReferences(raw));
  yield* guarded("the postings", () => auditPostings(raw));
  yield* guarded("the deposits", () => auditDeposits(raw));
  yield* guarded("the scopes", () => auditScopes(raw));
  yield* guarded("the warrants", () => auditWarrants(raw));
  yield* guarded("the log", () => auditLog(raw));
  yield* guarded("the anchors", () => auditAnchors(raw));
  yield* guarded("the purchases", () => auditPurchases(raw));
  yield* guarded("the capsules", () => auditCapsules(raw));
  yield* guarded("the directory", () => auditDirectory(raw));
  yield* guarded("the rows that are kept", () => auditKept(raw));
  yield* guarded("the digests", () => auditDigests(raw));
}

/** The pages and indexes, and the CHECKs of every row. */
function* auditFile(raw: Database): Generator<string> {
  // SQLite skips the CHECKs of tables on a read-only connection. So this one is writable, and `query_only`
  // forbids it to write.
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
}
