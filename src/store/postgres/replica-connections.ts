import { SQL } from "bun";
import type { SqlReader } from "../sql/readers/sql-reader.ts";
import { connectionOptions, type PostgresAddress } from "./address.ts";
import { ConnectionLost, createSessions, type Patience, type Sessions } from "./client.ts";
import { type LedgerWatch, whileFit } from "./ledger-watch.ts";
import { createReadSnapshots, type ReadSnapshots, SNAPSHOTS_MAX } from "./read-snapshots.ts";
import type { Replay } from "./replay.ts";

/** One for the questions which beat it has, and one for an audit. */
const OTHER_CONNECTIONS = 2;

/** The connections to a replica, until one of them is lost: then all of them are given up. */
export type Connected = {
  readonly pool: SQL;
  readonly sessions: Sessions;
  readonly snapshots: ReadSnapshots;
  /** What ends each waiting for an answer when one is lost. */
  readonly waiting: Set<(lost: ConnectionLost) => void>;
  /** Null until then. */
  lost: ConnectionLost | null;
};

/**
 * Waits for what was asked there, until the connections are lost. A race with one promise for all of them would keep every answer as long
 * as the connections are good.
 */
export function untilLost<Result>({ waiting, lost }: Connected, asked: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    waiting.add(reject);
    void asked.then(resolve, reject).finally(() => waiting.delete(reject));
    if (lost) reject(lost);
  });
}

export type ConnectionParts = {
  readonly version: string;
  readonly patience: Patience;
  /** Whether this process may go on with the ledger. */
  readonly watch: LedgerWatch;
  readonly replay: Replay;
  readonly reader: SqlReader;
};

type ReplicaConnections = {
  /** Those that are there; new ones where there are none. @throws ConnectionLost after `close` */
  now(): Connected;
  isConnected(): boolean;
  /** Gives connections up. */
  lose(which: Connected, cause: unknown): Promise<void>;
  close(): Promise<void>;
};

/** @param onLost is called when the connections are given up, other than by `close` */
export function createReplicaConnections(
  address: PostgresAddress,
  { version, patience, watch, replay, reader }: ConnectionParts,
  onLost: () => void,
): ReplicaConnections {
  let connected: Connected | null = null;
  let closed = false;

  function connect(): Connected {
    const max = SNAPSHOTS_MAX + OTHER_CONNECTIONS;
    const pool = new SQL({ ...connectionOptions(address, version), max });
    const sessions = whileFit(createSessions(pool, { ...patience, exchangeMs: patience.replicaMs }), watch);
    const snapshots = createReadSnapshots(sessions, replay, reader);
    return { pool, sessions, snapshots, waiting: new Set(), lost: null };
  }

  async function lose(which: Connected, cause: unknown): Promise<void> {
    if (connected === which) {
      connected = null;
      if (!closed) onLost();
    }
    which.lost ??= new ConnectionLost("a replica does not answer", { cause });
    for (const end of which.waiting) end(which.lost);
    await which.pool.close({ timeout: 0 }).catch(() => {});
  }

  return {
    now() {
      if (closed) throw new ConnectionLost("the store is closed");
      connected ??= connect();
      return connected;
    },
    isConnected: () => connected !== null,
    lose,
    async close() {
      closed = true;
      if (connected) await lose(connected, new Error("the store is closed"));
    },
  };
}
