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

type ReadConnection = Connection & { readonly readerOf: ReturnType<typeof createReaders> };

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
    return { ...connection, readerOf: createReaders(createSqliteReader(connection)) };
  }

  function begin(): Snapshot | null {
    const connection = idle.pop() ?? (opened < CONNECTIONS_MAX ? open() : null);
    if (connection === null) return null;
    // After an error of the disk an earlier transaction may still be open.
    if (connection.raw.inTransaction) connection.raw.run("ROLLBACK");
    connection.raw.run("BEGIN");
    const use = { users: 0 };
    return Object.assign(use, { connection, reader: connection.readerOf(use) });
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

type Reads = Readonly<Record<string, (...asked: unknown[]) => unknown>>;
/** The reads of a noun, as methods of an object that knows its snapshot. */
type Noun = { readonly snapshot: { readonly users: number } };

/**
 * Makes the seam's readers of a connection: each read gives a promise, and fails once the snapshot was let go. A snapshot is
 * begun in every turn of the event loop, so that its reader only inherits what is made here once.
 */
function createReaders(reader: SqliteReader): (snapshot: Noun["snapshot"]) => Reader {
  const nouns = Object.entries(reader as unknown as Readonly<Record<string, Reads>>).map(([noun, reads]) => {
    const methods = Object.entries(reads).map(([name, read]) => [
      name,
      async function (this: Noun, ...asked: unknown[]) {
        if (this.snapshot.users === 0)
          throw new Error(`${noun}.${name} reads from a snapshot that was let go`);
        return read(...asked);
      },
    ]);
    return [noun, Object.fromEntries(methods) as object] as const;
  });
  return (snapshot) => {
    const readerOfSnapshot: Record<string, object> = {};
    for (const [noun, methods] of nouns)
      readerOfSnapshot[noun] = Object.assign(Object.create(methods) as object, { snapshot });
    return readerOfSnapshot as unknown as Reader;
  };
}
