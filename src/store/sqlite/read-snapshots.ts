import type { Reader } from "../reader.ts";
import type { Connection } from "./open.ts";
import { createSqliteReader } from "./readers/reader.ts";
import type { SqliteReader } from "./readers/sqlite-reader.ts";

/** Connections for reads at most. Each is needed only while a snapshot is in use that is older than the newest. */
const CONNECTIONS_MAX = 8;

/** Read transactions that requests share. */
export type ReadSnapshots = {
  /** Reads from a snapshot of all that is committed when it is called. It is let go when `use` ends. */
  read<Result>(use: (reader: Reader) => Result | Promise<Result>): Promise<Result>;
  /** Something was committed: nobody joins the present snapshot any more. */
  refresh(): void;
  close(): void;
};

type ReadConnection = Connection & { readonly reader: SqliteReader };

type Snapshot = {
  readonly connection: ReadConnection;
  readonly reader: Reader;
  users: number;
};

/**
 * A read by itself locks and unlocks the file, which costs more than the look-up. So the reads that begin in one turn of the
 * event loop share a transaction. Nobody joins it after that turn, nor after a commit: whoever has an answer reads what it
 * says, and whoever asks sees what another process had committed by then. It ends when the last one that joined it has read.
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
    return { ...connection, reader: createSqliteReader(connection.tables) };
  }

  function begin(): Snapshot | null {
    const connection = idle.pop() ?? (opened < CONNECTIONS_MAX ? open() : null);
    if (connection === null) return null;
    // After an error of the disk an earlier transaction may still be open.
    if (connection.raw.inTransaction) connection.raw.run("ROLLBACK");
    connection.raw.run("BEGIN");
    const snapshot: Snapshot = {
      connection,
      reader: readerOf(connection.reader, () => snapshot.users > 0),
      users: 0,
    };
    return snapshot;
  }

  function end({ connection }: Snapshot): void {
    try {
      // After an error of the disk SQLite may have ended it by itself.
      if (connection.raw.inTransaction) connection.raw.run("COMMIT");
    } catch {
      // The next snapshot on this connection ends it, or fails.
    }
    if (closed) connection.raw.close();
    else idle.push(connection);
    waiting.shift()?.();
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

/** The seam's reader: each read gives a promise, and fails once the snapshot was let go. */
function readerOf(reader: SqliteReader, isHeld: () => boolean): Reader {
  const nouns = Object.entries(reader).map(([noun, reads]) => [
    noun,
    Object.fromEntries(
      Object.entries(reads).map(([name, read]: [string, (...asked: unknown[]) => unknown]) => [
        name,
        async (...asked: unknown[]) => {
          if (!isHeld()) throw new Error(`${noun}.${name} reads from a snapshot that was let go`);
          return read(...asked);
        },
      ]),
    ),
  ]);
  return Object.fromEntries(nouns) as Reader;
}
