import packageJson from "../../package.json" with { type: "json" };
import { createIds } from "../core/ids.ts";
import type { Progress } from "../core/progress.ts";
import { withReserve } from "../platform/descriptors.ts";
import { freeBytesOf } from "../platform/disk.ts";
import { logInfo } from "../platform/log.ts";
import { random40 } from "../platform/random.ts";
import { steadyNow } from "../platform/steady-clock.ts";
import type { MigrationWatch } from "../store/sql/migration-watch.ts";
import { openSqliteStore, type SqliteStore, type SqliteStoreOptions } from "../store/sqlite/store.ts";

/** Opens the ledger of a data folder, by the machine's clock. Throws where it cannot be opened. */
export const openStore = (
  dataFolder: string,
  options: Pick<SqliteStoreOptions, "onCommitted" | "migrationWatch"> = {},
): SqliteStore =>
  openSqliteStore(dataFolder, {
    ...options,
    version: packageJson.version,
    now: Date.now,
    steadyNow,
    opening: (open) => withReserve("this thread", open),
    freeBytes: () => freeBytesOf(dataFolder),
    newInstanceId: () => createIds(Date.now, random40)("instance"),
  });

/** How many rows of a table get their digests between two lines of the log. */
const LOGGED_ROWS = 100_000;

/** Logs how a server's start brings the tables up to date, and shows it on a terminal. */
export const watchMigration = (progress: Progress): MigrationWatch => ({
  onPending: (changes) => logInfo("bringing the ledger's tables up to date", { changes }),
  onProgress({ of, done, total }) {
    progress.update(done, total);
    if (of === "changes") logInfo("a change of the ledger's tables is made", { done, total });
    else if (done % LOGGED_ROWS === 0 || done === total)
      logInfo("rows of the ledger get their digests", { table: of.rowsOf, done, total });
  },
});
