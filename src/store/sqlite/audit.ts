import { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { auditAnchors } from "./audit/anchors.ts";
import { auditCapsules } from "./audit/capsules.ts";
import { auditChainTransfers } from "./audit/chain-transfers.ts";
import { auditDeposits } from "./audit/deposits.ts";
import { auditDigests } from "./audit/digests.ts";
import { auditDirectory } from "./audit/directory.ts";
import { auditKept } from "./audit/kept.ts";
import { auditLog } from "./audit/log.ts";
import { auditPayouts } from "./audit/payouts.ts";
import { auditPostings } from "./audit/postings.ts";
import { rowsToAudit } from "./audit/progress.ts";
import { auditPurchases } from "./audit/purchases.ts";
import { auditRails } from "./audit/rails.ts";
import { auditReferences } from "./audit/references.ts";
import { guarded } from "./audit/rows.ts";
import { auditScopes } from "./audit/scopes.ts";
import type { Did } from "./audit/slices.ts";
import { auditStatements } from "./audit/statements.ts";
import { auditWarrants } from "./audit/warrants.ts";
import { ledgerFile } from "./ledger-file.ts";
import { type Connection, connect } from "./open.ts";
import { schemaDisagreements } from "./schema.ts";

/** After this many messages the audit ends, since more would not help anybody. */
const MESSAGES_MAX = 1_000;

/** The warrants, with all that belongs to them, take as long as the rest. So both can be audited at the same time. */
export const SHARES = ["the rest", "the warrants"] as const;
export type Share = (typeof SHARES)[number];

export type AuditOptions = {
  /** What alone is audited; everything where it is missing. */
  readonly share?: Share;
  /**
   * In a longer file, pages, indexes and CHECKs are not checked. That check cannot be split: it reads for
   * seconds for each gigabyte, and meanwhile the write-ahead log only grows.
   */
  readonly fileBytesMax?: number;
  /** Called with how many rows were read, and how many there are. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
};

/**
 * Audits the ledger in a data folder, and whether its tables and their guards are as Holdfast makes them. Others may read and write it meanwhile.
 */
export function auditFolder(
  dataFolder: string,
  { fileBytesMax = Number.POSITIVE_INFINITY, share, onProgress }: AuditOptions = {},
): readonly string[] {
  const file = ledgerFile(dataFolder);
  const reader = connect(file, { readonly: true });
  try {
    const checksFile = statSync(file).size <= fileBytesMax;
    return [
      ...(share === "the warrants" ? [] : guarded("the tables", () => schemaDisagreements(reader.raw))),
      ...auditLedger(reader, { checksFile, onProgress, ...(share && { share }) }),
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
export function auditLedger(
  { raw }: Connection,
  {
    checksFile = true,
    share,
    onProgress,
  }: { readonly checksFile?: boolean } & Pick<AuditOptions, "onProgress" | "share"> = {},
): readonly string[] {
  const did = onProgress ? counting(raw, onProgress) : () => {};
  const messages: string[] = [];
  for (const each of share ? [share] : SHARES) {
    for (const message of DISAGREEMENTS[each](raw, did, checksFile)) {
      messages.push(message);
      if (messages.length === MESSAGES_MAX) return messages;
    }
  }
  return messages;
}

/** Adds up what was read. The ledger may grow meanwhile. */
function counting(raw: Database, onProgress: NonNullable<AuditOptions["onProgress"]>): Did {
  const total = rowsToAudit(raw);
  let done = 0;
  onProgress(done, total);
  return (rows) => {
    done += rows;
    onProgress(Math.min(done, total), total);
  };
}

/** The parts are independent: each is audited even where another one cannot be read. */
const DISAGREEMENTS: Readonly<
  Record<Share, (raw: Database, did: Did, checksFile: boolean) => Generator<string>>
> = {
  *"the warrants"(raw, did) {
    yield* guarded("the warrants", () => auditWarrants(raw, did));
  },
  *"the rest"(raw, did, checksFile) {
    if (checksFile) yield* guarded("the file", () => auditFile(raw));
    yield* guarded("the references", () => auditReferences(raw, did));
    yield* guarded("the postings", () => auditPostings(raw, did));
    yield* guarded("the deposits", () => auditDeposits(raw, did));
    yield* guarded("the transfers of treasuries", () => auditChainTransfers(raw, did));
    yield* guarded("the payouts", () => auditPayouts(raw, did));
    yield* guarded("the scopes", () => auditScopes(raw));
    yield* guarded("the log", () => auditLog(raw, did));
    yield* guarded("the statements", () => auditStatements(raw, did));
    yield* guarded("the anchors", () => auditAnchors(raw, did));
    yield* guarded("the payouts on chains", () => auditRails(raw, did));
    yield* guarded("the purchases", () => auditPurchases(raw, did));
    yield* guarded("the capsules", () => auditCapsules(raw, did));
    yield* guarded("the directory", () => auditDirectory(raw, did));
    yield* guarded("the rows that are kept", () => auditKept(raw));
    yield* guarded("the digests", () => auditDigests(raw, did));
  },
};

/** The pages and indexes, and the CHECKs of every row. */
function* auditFile(raw: Database): Generator<string> {
  // SQLite skips the CHECKs of tables on a read-only connection. So this one is writable, and `query_only`
  // forbids it to write.
  const reader = new Database(raw.filename, { readwrite: true, safeIntegers: true });
  try {
    reader.run("PRAGMA query_only = ON");
    // It looks up the row of every entry of every index. With SQLite's own 2 MB it would read most pages many times.
    reader.run("PRAGMA cache_size = -65536");
    const problems = reader.query<{ integrity_check: string }, []>("PRAGMA integrity_check(100)");
    for (const { integrity_check: problem } of problems.iterate()) {
      if (problem !== "ok") yield `the file: ${problem}`;
    }
  } finally {
    reader.close();
  }
}
