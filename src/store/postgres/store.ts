import { SQL } from "bun";
import type { DatabaseFigures, ReadReplicaState, ReplicaFigures } from "../../core/database.ts";
import type { AnyCommand } from "../batch.ts";
import { createApply } from "../sql/apply.ts";
import type { SqlDatabase } from "../sql/database.ts";
import { createLoadOne } from "../sql/load.ts";
import type { MigrationWatch } from "../sql/migration-watch.ts";
import { createNames } from "../sql/names.ts";
import { newestIdTime } from "../sql/newest-id.ts";
import { createPositions } from "../sql/positions.ts";
import { createSqlReader } from "../sql/readers/reader.ts";
import { createWatchers } from "../sql/watchers.ts";
import type { Store } from "../store.ts";
import { connectionOptions, type PostgresAddress } from "./address.ts";
import { allEnded } from "./all-ended.ts";
import { auditPostgres, type CopyPlace } from "./audit.ts";
import type { NewsTextOf } from "./batch-run.ts";
import { createSessions, PATIENCE, type Patience, type Sessions } from "./client.ts";
import { createCommitClock } from "./commit-clock.ts";
import { readAgain } from "./contention.ts";
import { createHeartbeat } from "./heartbeat.ts";
import { createKeyLookUps } from "./key-look-ups.ts";
import { createLanes, LANES } from "./lanes.ts";
import { type LastAudit, lastAuditIn } from "./last-audit.ts";
import { type LedgerWatch, verified, watchLedger, whileFit } from "./ledger-watch.ts";
import { migratePostgres } from "./migrate.ts";
import { followOthers } from "./others.ts";
import { createReadSnapshots, SNAPSHOTS_MAX } from "./read-snapshots.ts";
import { createReplay, fetchAnswers, type Lacking, type Replay } from "./replay.ts";
import { createReplicas, type Replicas } from "./replicas.ts";
import { reportedReplicas } from "./reported-replicas.ts";
import { settled } from "./settled.ts";
import { createWork } from "./work.ts";

export type PostgresStoreOptions = {
  /** The version of this executable. */
  readonly version: string;
  /** The clock; epoch milliseconds. */
  readonly now: () => number;
  /** A clock that never jumps, in milliseconds since any moment. */
  readonly steadyNow: () => number;
  /** Makes the id of the instance, where a new ledger is created. */
  readonly newInstanceId: () => string;
  /** Where the copies are made that are audited. */
  readonly auditCopies: CopyPlace;
  /** Follows how the tables are brought up to date. */
  readonly migrationWatch?: Partial<MigrationWatch>;
  /** What pages of other instances are told of writes. Without it they are told that these may be anything. */
  readonly newsTextOf?: NewsTextOf;
  /** How long the server is waited for. */
  readonly patience?: Partial<Patience>;
  /** Called when the commands of a transaction are on disk. */
  readonly onCommitted?: (commands: number, durationMs: number) => void;
  /** The replicas that reads may go to. */
  readonly replicas?: readonly PostgresAddress[];
  /** Called where one of them stands otherwise than before. */
  readonly onReplica?: (name: string, state: ReadReplicaState) => void;
};

export interface PostgresStore extends Store {
  /** The time in the newest id of the tables that are ordered by ids, epoch milliseconds; -1 where there is none. */
  readonly newestIdTime: number;
  figures(): DatabaseFigures;
  /** Begins to follow the replicas, and resolves when it is known how they stand. A read that may go to one begins it too. */
  followReplicas(): Promise<void>;
  readonly lastAudit: LastAudit;
  /** The replicas that the server reports. */
  replicas(): Promise<readonly ReplicaFigures[]>;
  /** Resolves once this process must not go on with the ledger. From then on nothing is read or written. */
  readonly unfit: LedgerWatch["unfit"];
}

/** Connections for other work than commands and reads: keys, jobs, questions about what became of a transaction, and the heartbeat. */
const OTHER_CONNECTIONS = 6;

/**
 * The engine for a ledger on a PostgreSQL server. It brings the tables up to date.
 *
 * @throws NewerLedger where the ledger is of a newer version that this one may not write to
 */
export async function openPostgresStore(
  address: PostgresAddress,
  options: PostgresStoreOptions,
): Promise<PostgresStore> {
  const { version, now, steadyNow, newInstanceId, onCommitted, migrationWatch } = options;
  const { newsTextOf = () => null } = options;
  const patience = { ...PATIENCE, ...options.patience };
  let opened = 0;
  const pool = new SQL({
    ...connectionOptions(address, version),
    max: LANES + SNAPSHOTS_MAX + OTHER_CONNECTIONS,
    onconnect: () => {
      opened += 1;
    },
  });
  const newInstance = () => ({ id: newInstanceId(), createdAt: now() });
  const watching = { version, newInstance, ...(migrationWatch && { watch: migrationWatch }) };
  await migratePostgres(pool, watching).catch(async (error: unknown) => {
    await pool.close({ timeout: 0 });
    throw error;
  });
  const process = crypto.randomUUID();
  const watch = watchLedger(steadyNow);
  const unsettled = createSessions(pool, patience);
  const heartbeat = createHeartbeat(whileFit(unsettled, watch), process, steadyNow);
  const sessions = settled(unsettled, heartbeat, () => opened);
  const replay = createReplay();
  const { connection } = replay;
  const known = await ask(sessions, replay, () => ({
    newestIdTime: newestIdTime(connection.raw),
    recordedAt: newestRecord(connection.raw),
  }));
  const positions = createPositions(connection.raw);
  const names = createNames(connection.raw);
  const clock = createCommitClock(now, steadyNow, known.recordedAt);
  const reader = createSqlReader(connection);
  const snapshots = createReadSnapshots(whileFit(sessions, watch), replay, reader);
  const keys = createKeyLookUps(whileFit(sessions, watch), replay, reader);
  const replicaParts = { ...options, process, patience, watch, heartbeat, replay, reader };
  const replicas = createReplicas(options.replicas ?? [], replicaParts, readAgain(snapshots.read));
  const others = followOthers(sessions, { process, version }, watch);
  const watchers = createWatchers(others.news);
  const parts = {
    ...{ replay, positions, names, timeAfter: clock.timeAfter, process, version, newsTextOf },
    loadOne: createLoadOne(connection, positions, names),
    apply: createApply(connection, positions),
  };
  const lanes = createLanes(
    verified(sessions, watch),
    watch,
    parts,
    ({ writes, time }, commands, durationMs) => {
      if (writes.length > 0) clock.recorded(time);
      watchers.written(writes);
      snapshots.refresh();
      watchers.committed();
      onCommitted?.(commands, durationMs);
    },
  );
  return {
    execute: (command: unknown) => lanes.execute(command as AnyCommand) as Promise<never>,
    read: readsOf(whileFit(sessions, watch), replicas),
    apiKey: keys.of,
    lastRecordedAt: clock.lastRecordedAt,
    ...watchers.ofStore,
    newestIdTime: known.newestIdTime,
    figures: () => ({ ...lanes.figures, ...sessions.health, ...replicas.figures() }),
    followReplicas: replicas.start,
    lastAudit: lastAuditIn(whileFit(sessions, watch)),
    replicas: reportedReplicas(whileFit(sessions, watch), steadyNow),
    unfit: watch.unfit,
    audit: (onProgress) => auditPostgres(pool, options.auditCopies, onProgress, undefined, replicas.alone),
    ...createWork(lanes, parts, watch),
    ...{ hasSpace: () => true, hasSpaceForCapsule: () => true },
    async close() {
      others.stop();
      await replicas.close();
      await lanes.close();
      await snapshots.close();
      await keys.close();
      await pool.close({ timeout: 1 });
    },
  };
}

const readsOf =
  (sessions: Sessions, replicas: Pick<Replicas, "read">): Store["read"] =>
  async (use, from) => {
    if (!from || !("afterAll" in from)) return replicas.read(use, from);
    await allEnded(sessions);
    return replicas.read(use);
  };

/** The time in the newest record of any organisation, or in the newest mark of retention; -1 where there is none. */
function newestRecord(raw: SqlDatabase): number {
  const scopes = raw.query<{ at: bigint | null }, []>("SELECT max(recorded_at) AS at FROM scopes").get();
  const instance = raw.query<{ marks: string }, []>("SELECT retention_marks AS marks FROM instances").get();
  const marks: readonly { readonly recordedAt: number }[] = JSON.parse(instance?.marks ?? "[]");
  return Math.max(Number(scopes?.at ?? -1n), marks.at(-1)?.recordedAt ?? -1);
}

/** Reads outside of a snapshot. */
async function ask<Result>(sessions: Sessions, replay: Replay, work: () => Result): Promise<Result> {
  const session = await sessions.reserve();
  try {
    const answers = new Map();
    for (;;) {
      const lacking: Lacking = new Map();
      const done = replay.attempt({ answers, lacking }, work);
      if (done) return done.result;
      await fetchAnswers(session, lacking, answers);
    }
  } finally {
    session.release();
  }
}
