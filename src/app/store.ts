import { tmpdir } from "node:os";
import { SQL } from "bun";
import packageJson from "../../package.json" with { type: "json" };
import type { Config, Secrets } from "../config.ts";
import type { DatabaseFigures, ReplicaFigures } from "../core/database.ts";
import { refuseField } from "../core/errors.ts";
import { createIds } from "../core/ids.ts";
import type { Progress } from "../core/progress.ts";
import { withReserve } from "../platform/descriptors.ts";
import { freeBytesOf } from "../platform/disk.ts";
import { logInfo } from "../platform/log.ts";
import { random40 } from "../platform/random.ts";
import { steadyNow } from "../platform/steady-clock.ts";
import { newsTextOf } from "../services/live/news.ts";
import { ALONE, type Instances } from "../store/instances.ts";
import { nameOfDatabase, type PostgresAddress } from "../store/postgres/address.ts";
import type { CopyPlace } from "../store/postgres/audit.ts";
import type { LastAudit } from "../store/postgres/last-audit.ts";
import type { Unfit } from "../store/postgres/ledger-watch.ts";
import type { SharedMemory } from "../store/shared-memory.ts";
import { NewerLedger } from "../store/sql/ledger-version.ts";
import type { MigrationWatch } from "../store/sql/migration-watch.ts";
import { openSqliteStore, type SqliteStoreOptions } from "../store/sqlite/store.ts";
import type { Store } from "../store/store.ts";
import { REPLICAS } from "./database.ts";
import { logReplica, logStanding } from "./instances.ts";

/** What a server knows of its database. */
export type WatchedDatabase = {
  figures(): DatabaseFigures;
  replicas(): Promise<readonly ReplicaFigures[]>;
  readonly lastAudit: LastAudit;
  readonly auditCopies: CopyPlace & {
    /** Removes those of processes that were killed. */
    removeLeft(): void;
  };
};

/** The ledger, opened by one of the two engines. */
export type OpenedStore = {
  readonly store: Store;
  /** The time in the newest id of the tables that are ordered by ids, epoch milliseconds; -1 where there is none. */
  readonly newestIdTime: number;
  /** Resolves once this process must not go on with the ledger; null where it is in the data folder, which has its lock. */
  readonly unfit: Promise<Unfit> | null;
  /** Copies the rest of the embedded engine's write-ahead log; null where the ledger is in a database. */
  readonly finishWalCheckpoint: (() => void) | null;
  /** Null where the ledger is in the data folder. */
  readonly database: WatchedDatabase | null;
  /** The processes that serve the ledger. */
  readonly instances: Instances;
  /** What they remember together; null where there is but one. */
  readonly shared: (SharedMemory & { close(): Promise<void> }) | null;
};

type Options = Pick<SqliteStoreOptions, "onCommitted" | "migrationWatch">;

/** Where the copies of a ledger in a database are made that are audited. */
export function auditCopiesIn({ auditFolder }: Pick<Config, "auditFolder">): CopyPlace {
  const folder = auditFolder ?? tmpdir();
  return { folder, freeBytes: () => freeBytesOf(folder) };
}

/** What both engines are given: the machine's clock, and who this executable is. */
const GIVEN = {
  version: packageJson.version,
  now: Date.now,
  steadyNow,
  newInstanceId: () => createIds(Date.now, random40)("instance"),
};

/** Opens the ledger of a data folder. Throws where it cannot be opened. */
export function openFolder(dataFolder: string, options: Options = {}): OpenedStore {
  const store = openSqliteStore(dataFolder, {
    ...options,
    ...GIVEN,
    opening: (open) => withReserve("this thread", open),
    freeBytes: () => freeBytesOf(dataFolder),
  });
  const { newestIdTime, finishWalCheckpoint } = store;
  const alone = { database: null, instances: ALONE, shared: null, unfit: null };
  return { store, newestIdTime, finishWalCheckpoint, ...alone };
}

/** A sign-in that waits for another's row must not hold up those that do not. */
const SHARED_CONNECTIONS = 4;

/** The ledger of a database. */
type OpenedDatabase = OpenedStore & {
  /** Begins to follow the replicas. Throws a refusal where a server is no replica of the database. Without it, a read that may go to one begins it. */
  followReplicas(): Promise<void>;
};

/**
 * Opens the ledger of a database. Throws a refusal where the server is not what it must be.
 *
 * @param replicas servers that reads may go to
 */
export async function openDatabase(
  address: PostgresAddress,
  replicas: readonly PostgresAddress[],
  config: Pick<Config, "auditFolder">,
  options: Options = {},
): Promise<OpenedDatabase> {
  // The engine is loaded by those alone who ask for it.
  const { problemAt, problemOfOpening, problemOfReplica } = await import("../store/postgres/server.ts");
  const problem = await problemAt(address, GIVEN.version, GIVEN.now);
  if (problem !== null) throw refuseField("HOLDFAST_DATABASE", problem);
  const { openPostgresStore } = await import("../store/postgres/store.ts");
  const auditCopies = auditCopiesIn(config);
  const reading = { replicas, onReplica: logReplica };
  const giving = { ...GIVEN, auditCopies, newsTextOf };
  const opening = openPostgresStore(address, { ...options, ...giving, ...reading });
  const store = await opening.catch((error: unknown) => {
    const refused = error instanceof NewerLedger ? error.message : problemOfOpening(error);
    throw refused === null ? error : refuseField("HOLDFAST_DATABASE", refused);
  });
  const { removeLeftCopies } = await import("../store/postgres/audit.ts");
  const database = {
    figures: store.figures,
    lastAudit: store.lastAudit,
    replicas: store.replicas,
    auditCopies: { ...auditCopies, removeLeft: () => removeLeftCopies(auditCopies.folder) },
  };
  const { connectionOptions } = await import("../store/postgres/address.ts");
  const { postgresInstances } = await import("../store/postgres/instances.ts");
  const { createPostgresSharedMemory } = await import("../store/postgres/shared-memory.ts");
  const connectBy = (max: number) => () => new SQL({ ...connectionOptions(address, GIVEN.version), max });
  const newId = () => createIds(Date.now, random40)("instance");
  const members = postgresInstances({ connect: connectBy(1), newId, steadyNow, onStanding: logStanding });
  const { newestIdTime, unfit } = store;
  let isUnfit = false;
  void unfit.then(() => {
    isUnfit = true;
  });
  // It begins nothing any more.
  const instances: Instances = { ...members, isLost: () => isUnfit || members.isLost() };
  const shared = createPostgresSharedMemory({ connect: connectBy(SHARED_CONNECTIONS), instance: newId() });
  return {
    ...{ store, newestIdTime, unfit, finishWalCheckpoint: null, database, instances, shared },
    async followReplicas() {
      const problems = await Promise.all(
        replicas.map(async (replica) => {
          const found = await problemOfReplica(replica, address, GIVEN.version);
          return found && `${nameOfDatabase(replica)}: ${found}`;
        }),
      );
      const wrong = problems.find((one) => one !== null);
      if (wrong) throw refuseField(REPLICAS, wrong);
      await store.followReplicas();
    },
  };
}

/** Opens the ledger of a server, as `openFolder` and `openDatabase` do. Throws a refusal also where a server is no replica of the database. */
export async function openLedger(
  config: Config,
  { database, databaseReplicas }: Secrets,
  options: Options,
): Promise<OpenedStore> {
  if (!database) return openFolder(config.data, options);
  const opened = await openDatabase(database, databaseReplicas, config, options);
  try {
    await opened.followReplicas();
  } catch (error) {
    await opened.store.close();
    throw error;
  }
  return opened;
}

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
