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
  /** Rejects with ConnectionLost when one is lost: nothing that was asked is waited for then. */
  readonly lost: PromiseWithResolvers<never>;
};

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
    const sessions = whileFit(createSessions(pool, patience), watch);
    const lost = Promise.withResolvers<never>();
    lost.promise.catch(() => {});
    return { pool, sessions, snapshots: createReadSnapshots(sessions, replay, reader), lost };
  }

  async function lose(which: Connected, cause: unknown): Promise<void> {
    if (connected === which) {
      connected = null;
      if (!closed) onLost();
    }
    which.lost.reject(new ConnectionLost("a replica does not answer", { cause }));
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
