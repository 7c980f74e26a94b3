import type { Reader } from "../reader.ts";
import { createReaders } from "../sql/readers/of-snapshot.ts";
import { createSqlReader } from "../sql/readers/reader.ts";
import type { Connection } from "./open.ts";

/**
 * How many connections reads may use. One is enough for the newest snapshot; each older snapshot that is
 * still in use needs another.
 */
const CONNECTIONS_MAX = 8;

/** Read transactions that requests share. */
export type ReadSnapshots = {
  /** Reads from a snapshot of everything that was committed before the call. The snapshot ends with `use`. */
  read<Result>(use: (reader: Reader) => Result | Promise<Result>): Promise<Result>;
  /** Called after a commit: later reads begin a new snapshot. */
  refresh(): void;
  close(): void;
};

type Used = { readonly users: number };
type ReadConnection = Connection & { readonly readerOf: (snapshot: Used) => Reader };

const atOnce = (_: Used, read: () => unknown): unknown => read();

type Snapshot = {
  readonly connection: ReadConnection;
  readonly reader: Reader;
  users: number;
};

/**
 * Reads that begin in the same turn of the event loop share one transaction: a transaction for each would
 * lock and unlock the file, which costs more than the read. Nobody joins it after that turn or after a
 * commit. So a caller who got an answer can read what it says, and every read sees what other processes had
 * committed before it. The transaction ends with its last read.
 */
export function createReadSnapshots(connect: () => Connection): ReadSnapshots {
  const idle: ReadConnection[] = [];
  const waiting: (() => void)[] = [];
  let opened = 0;
  let current: Snapshot | null = null;
  let closed = false;

  function open(): ReadConnection {
    const connection = connect();
    opened += 1;
    return { ...connection, readerOf: createReaders<Used>(createSqlReader(connection), atOnce) };
  }

  function begin(): Snapshot | null {
    const connection = idle.pop() ?? (opened < CONNECTIONS_MAX ? open() : null);
    if (connection === null) return null;
    try {
      // After a disk error an earlier transaction may still be open.
      if (connection.raw.inTransaction) connection.raw.run("ROLLBACK");
      connection.raw.run("BEGIN");
    } catch (error) {
      opened -= 1;
      connection.raw.close();
      throw error;
    }
    const use = { users: 0 };
    return Object.assign(use, { connection, reader: connection.readerOf(use) });
  }

  function end({ connection }: Snapshot): void {
    try {
      // After a disk error SQLite may have ended the transaction by itself.
      if (connection.raw.inTransaction) connection.raw.run("COMMIT");
    } catch {
      // A transaction that is still open is ended by the next snapshot on this connection.
    }
    if (closed) connection.raw.close();
    else idle.push(connection);
    // All can join the snapshot that the first of them begins.
    for (const free of waiting.splice(0)) free();
  }

  function leave(snapshot: Snapshot): void {
    snapshot.users -= 1;
    if (snapshot.users === 0 && snapshot !== current) end(snapshot);
  }

  function refresh(): void {
    const snapshot = current;
    current = null;
    if (snapshot?.users === 0) end(snapshot);
  }

  async function join(): Promise<Snapshot> {
    while (current === null) {
      if (closed) throw new Error("the store is closed");
      current = begin();
      if (current === null) await new Promise<void>((free) => waiting.push(free));
      else setImmediate(endTurnOf, current);
    }
    current.users += 1;
    return current;
  }

  function endTurnOf(snapshot: Snapshot): void {
    if (snapshot === current) refresh();
  }

  return {
    async read(use) {
      const snapshot = await join();
      try {
        return await use(snapshot.reader);
      } finally {
        leave(snapshot);
      }
    },
    refresh,
    close() {
      refresh();
      closed = true;
      for (const { raw } of idle.splice(0)) raw.close();
    },
  };
}
