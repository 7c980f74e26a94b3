import { afterAll, afterEach, beforeAll, beforeEach, describe, test } from "bun:test";
import { relative, resolve } from "node:path";
import { ENGINE } from "./engine.ts";

const OF_ITS_FILE =
  "damages the embedded engine's file; the audit of a database reads a copy of it in such a file";
const OF_BACKUPS = "backups are files of the embedded engine; those of a database are PostgreSQL's own";
const OF_TRANSACTIONS = "how the embedded engine groups commands into transactions, and waits for its file";
const OF_FAULTS = "faults of the disk and of SQLite's statements";

/** The files with tests of the embedded engine alone, and why they are: all of their tests, or those that are marked. */
export const EMBEDDED_ONLY: Readonly<Record<string, string>> = {
  "test/cli/backup-verified.test.ts": OF_BACKUPS,
  "test/cli/backup.test.ts": OF_BACKUPS,
  "test/faults/clock-jumps.test.ts":
    "a server that starts by a clock that has jumped, which is refused where it is not the database's; another test there has that",
  "test/faults/disk-full.test.ts": OF_FAULTS,
  "test/faults/every-column.test.ts": OF_ITS_FILE,
  "test/faults/power-cut.test.ts": OF_FAULTS,
  "test/http/other-process.test.ts": "which reads of the embedded engine share a snapshot",
  "test/http/restored.test.ts": OF_BACKUPS,
  "test/jobs/deposits.test.ts": "restores a copy of the embedded engine's file",
  "test/process/backup.test.ts": OF_BACKUPS,
  "test/process/beside-server.test.ts":
    "one server on a folder; test/postgres has several on a database, and test/crash kills them",
  "test/process/documentation.test.ts":
    "what the pages say to type, on data folders, whatever the tests run on",
  "test/process/progress.test.ts": "waits while another process writes to the embedded engine's file",
  "test/process/start.test.ts": "what a start finds in a data folder; test/postgres starts on databases",
  "test/platform/audit-child.test.ts": OF_ITS_FILE,
  "test/platform/wal-checkpoint-child.test.ts": "copies the write-ahead log of the embedded engine",
  "test/store/audit-anchors.test.ts": OF_ITS_FILE,
  "test/store/audit-capsules.test.ts": OF_ITS_FILE,
  "test/store/audit-imported.test.ts": OF_ITS_FILE,
  "test/store/audit-log.test.ts": OF_ITS_FILE,
  "test/store/audit-purchases.test.ts": OF_ITS_FILE,
  "test/store/audit-transfers.test.ts": OF_ITS_FILE,
  "test/store/audit.test.ts": OF_ITS_FILE,
  "test/store/batch.test.ts": "counts SQLite's statements; test/postgres counts the round trips",
  "test/store/beside.test.ts": OF_TRANSACTIONS,
  "test/store/commit.test.ts": OF_TRANSACTIONS,
  "test/store/encrypted-backup.test.ts": OF_BACKUPS,
  "test/store/every-index.test.ts": "the plans of SQLite's statements",
  "test/store/guards.test.ts": "SQLite's triggers; test/postgres has those of PostgreSQL",
  "test/store/kept-ledgers.test.ts": "files that older versions wrote",
  "test/store/known-keys.test.ts": "how another process on the embedded engine's file is noticed",
  "test/store/ledger-version.test.ts":
    "the version in the embedded engine's file; test/postgres has that of a database",
  "test/store/migrate.test.ts": "SQLite's migrations; test/postgres has those of PostgreSQL",
  "test/store/probe.test.ts": "the pragma that the embedded engine writes",
  "test/store/read-plans.test.ts": "the plans of SQLite's statements",
  "test/store/read-snapshots.test.ts": "the connections of the embedded engine",
  "test/store/row-cache.test.ts": "the rows that the embedded engine keeps between its transactions",
};

const ROOT = resolve(import.meta.dir, "../..");
const skipped = () => {};

/**
 * The functions of bun:test for tests of the embedded engine alone. On PostgreSQL they skip, and say why.
 *
 * @param path of the test file
 */
export function onlyEmbedded(path: string) {
  const name = relative(ROOT, path);
  const why = EMBEDDED_ONLY[name];
  if (why === undefined) throw new Error(`${name} is not listed in ${relative(ROOT, import.meta.path)}`);
  const functions = { afterAll, afterEach, beforeAll, beforeEach, describe, test };
  if (ENGINE === "embedded") return functions;
  console.log(`skipped on PostgreSQL: ${name}: ${why}`);
  return {
    ...{ describe: describe.skip as typeof describe, test: test.skip as typeof test },
    ...{ afterAll: skipped, afterEach: skipped, beforeAll: skipped, beforeEach: skipped },
  } as typeof functions;
}
