import type { Database } from "bun:sqlite";
import { FREE_BYTES_MIN_OF_CAPSULES, FREE_BYTES_MIN_OF_SANDBOX } from "../../core/operation.ts";
import type { AnyCommand } from "../batch.ts";
import { createRowCache } from "../row-cache.ts";
import { createApply } from "../sql/apply.ts";
import type { NewerLedger } from "../sql/ledger-version.ts";
import { createLoad } from "../sql/load.ts";
import { createLogWriter, type LogWriter } from "../sql/log.ts";
import type { MigrationWatch } from "../sql/migration-watch.ts";
import { createNames } from "../sql/names.ts";
import { newestIdTime } from "../sql/newest-id.ts";
import { createPositions } from "../sql/positions.ts";
import { createWatchers } from "../sql/watchers.ts";
import type { Store } from "../store.ts";
import { auditQuickly } from "./audit-threads.ts";
import { type CommitQueue, createCommitQueue } from "./commit.ts";
import { createCommitClock } from "./commit-clock.ts";
import { createForget } from "./forget.ts";
import { createKnownKeys } from "./known-keys.ts";
import { ledgerFile } from "./ledger-file.ts";
import { newerLedger } from "./ledger-version.ts";
import { connect, openLedger } from "./open.ts";
import { createReadSnapshots } from "./read-snapshots.ts";

export type SqliteStoreOptions = {
  /** The version of this executable. */
  readonly version: string;
  /** The clock; epoch milliseconds. */
  readonly now: () => number;
  /** A clock that never jumps, in milliseconds since any moment. */
  readonly steadyNow: () => number;
  /** Makes the id of the instance, where a new ledger is created. */
  readonly newInstanceId: () => string;
  /** Follows how the tables are brought up to date. */
  readonly migrationWatch?: Partial<MigrationWatch>;
  /** Runs what opens files while the store is in use. By default it simply runs it. */
  readonly opening?: <Opened>(open: () => Opened) => Opened;
  /** The free bytes on the disk; null where they are not known. */
  readonly freeBytes: () => number | null;
  /** Called when the commands of a transaction are on disk. */
  readonly onCommitted?: (commands: number, durationMs: number) => void;
};

export interface SqliteStore extends Store {
  /**
   * The time in the newest id of the tables that are ordered by ids, epoch milliseconds; -1 where there is
   * none.
   */
  readonly newestIdTime: number;
  /** Copies the rest of the write-ahead log that the other process has left (`wal-checkpoint.ts`). */
  finishWalCheckpoint(): void;
}

/**
 * The embedded engine: one SQLite file in the data folder, one writing connection, and several reading ones.
 */
export function openSqliteStore(dataFolder: string, options: SqliteStoreOptions): SqliteStore {
  const { version, now, steadyNow, newInstanceId, onCommitted, migrationWatch } = options;
  const { freeBytes, opening = (open) => open() } = options;
  const newInstance = () => ({ id: newInstanceId(), createdAt: now() });
  const writer = openLedger(dataFolder, version, newInstance, migrationWatch);
  const snapshots = createReadSnapshots(() =>
    opening(() => connect(ledgerFile(dataFolder), { readonly: true })),
  );
  const cache = createRowCache();
  const positions = createPositions(writer.raw);
  const names = createNames(writer.raw);
  const clock = createCommitClock(writer.raw, now, steadyNow);
  const keys = createKnownKeys(
    writer.raw,
    (hash) => snapshots.read(({ apiKeys }) => apiKeys.byHash(hash)),
    snapshots.refresh,
  );
  const apply = createApply(writer, positions);
  const watchers = createWatchers(newsOfOthersIn(writer.raw, snapshots.refresh));
  let newer: NewerLedger | null = null;
  /** Whether the present transaction writes rows of commands, which carry its time. */
  let records = false;
  const commits = createCommitQueue({
    database: writer.raw,
    cache,
    load: createLoad(writer, positions, names),
    apply(writes) {
      apply(writes);
      keys.written(writes);
      watchers.written(writes);
      records ||= writes.length > 0;
    },
    undone() {
      cache.clear();
      positions.forget();
      names.forget();
      keys.undone();
      watchers.undone();
    },
    begun() {
      const { time, isOthers } = clock.begin();
      records = false;
      if (isOthers) {
        cache.clear();
        // A newer executable may have changed the tables meanwhile.
        newer = newerLedger(writer.raw, version);
      }
      if (newer) throw newer;
      return time;
    },
    committed(time, commands, durationMs) {
      if (records) clock.recorded(time);
      keys.committed();
      snapshots.refresh();
      watchers.committed();
      onCommitted?.(commands, durationMs);
    },
  });
  const forget = createForget(writer.raw);
  return {
    execute: (command: unknown) => commits.execute(command as AnyCommand) as Promise<never>,
    read: readsOf(snapshots),
    apiKey: keys.of,
    lastRecordedAt: clock.lastRecordedAt,
    ...watchers.ofStore,
    newestIdTime: newestIdTime(writer.raw),
    async audit(onProgress) {
      return auditQuickly(dataFolder, { onProgress });
    },
    forget: (retention, rowsMax) => commits.run(() => forget(retention, rowsMax)),
    ...writesLog(createLogWriter(writer, false), commits),
    probe: () => commits.run(() => probe(writer.raw)),
    ...spaceWith(freeBytes),
    finishWalCheckpoint() {
      // SQLite cannot copy the log beyond the oldest snapshot, so the present one ends first.
      snapshots.refresh();
      writer.raw.run("PRAGMA wal_checkpoint(PASSIVE)");
    },
    async close() {
      commits.close();
      snapshots.close();
      writer.raw.close();
    },
  };
}

function writesLog(
  log: LogWriter,
  { runBeside }: CommitQueue,
): Pick<Store, "extendLog" | "keepCheckpoint" | "keepStatement"> {
  return {
    extendLog: (entriesMax) => runBeside(() => log.extend(entriesMax)),
    keepCheckpoint: (checkpoint) => runBeside(() => log.keepCheckpoint(checkpoint)),
    keepStatement: (statement) => runBeside(() => log.keepStatement(statement)),
  };
}

/** Commits are one after the other, each with higher positions, so there is nobody to wait for. */
const readsOf =
  (snapshots: Pick<Store, "read">): Store["read"] =>
  (use, from) => {
    const held = from && "otherwise" in from ? from.otherwise?.() : null;
    return held ? Promise.try(use, held) : snapshots.read(use);
  };

/** Asks whether another process has committed, which may be anything. Then no later read may use an older snapshot. */
function newsOfOthersIn(writer: Database, onOthersCommit: () => void): Store["newsOfOthers"] {
  const dataVersion = writer.query<{ data_version: bigint }, []>("PRAGMA data_version");
  let version: bigint | undefined;
  return () => {
    const current = dataVersion.get()?.data_version;
    const isOthers = version !== undefined && current !== version;
    version = current;
    if (!isOthers) return [];
    onOthersCommit();
    return null;
  };
}

/** Nothing reads the pragma `user_version`, and setting it writes a page to the disk. */
function probe(writer: Database): void {
  const [row] = writer.query<{ user_version: bigint }, []>("PRAGMA user_version").all();
  writer.run(`PRAGMA user_version = ${row?.user_version === 1n ? 2 : 1}`);
}

/** @param freeBytes null where nobody knows */
function spaceWith(freeBytes: () => number | null): Pick<SqliteStore, "hasSpace" | "hasSpaceForCapsule"> {
  const hasFree = (bytes: number): boolean => (freeBytes() ?? Number.POSITIVE_INFINITY) >= bytes;
  return {
    hasSpace: (mode) => mode === "live" || hasFree(FREE_BYTES_MIN_OF_SANDBOX),
    hasSpaceForCapsule: (mode) => hasFree(FREE_BYTES_MIN_OF_CAPSULES[mode]),
  };
}
