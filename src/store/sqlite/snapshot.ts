import type { Database } from "bun:sqlite";
import type { Reader } from "../reader.ts";

/** A read transaction that reads close together share. */
export type ReadSnapshot = {
  /** Joins the snapshot, or takes one. */
  readonly join: () => void;
  /** Ends a snapshot that is older than the requests which are arriving in this turn of the event loop. */
  readonly refresh: () => void;
  /** Ends it, so that the next read sees what was committed since. */
  readonly end: () => void;
};

/**
 * A read by itself locks and unlocks the file, which costs more than the look-up. The reads of one turn share a transaction
 * instead. It ends with the turn; before any command is answered, so whoever has an answer reads what it says; and before the
 * turn's first request, so whoever asks sees what another process had committed by then.
 */
export function createReadSnapshot(database: Database): ReadSnapshot {
  const begin = database.query("BEGIN");
  const commit = database.query("COMMIT");
  let taken = false;
  let arriving = false;
  const end = () => {
    if (!taken) return;
    taken = false;
    try {
      // After an error of the disk SQLite may have ended it by itself.
      if (database.inTransaction) commit.run();
    } catch {
      // Whoever committed is answered all the same; the next read ends it, or fails.
    }
  };
  return {
    join() {
      if (taken) return;
      if (database.inTransaction) commit.run();
      begin.run();
      taken = true;
      setImmediate(end);
    },
    refresh() {
      if (arriving) return;
      arriving = true;
      end();
      setImmediate(() => {
        arriving = false;
      });
    },
    end,
  };
}

/** Reads of a noun, such as `warrants`. */
type Nouns = Omit<Reader, "audit" | "refresh" | "newestIdTime">;

/** The reader, each of whose reads joins the snapshot. */
export function readingFrom(snapshot: ReadSnapshot, reader: Nouns): Nouns {
  const joined = Object.entries(reader).map(([noun, reads]) => [
    noun,
    Object.fromEntries(
      Object.entries(reads).map(([name, read]: [string, (...given: unknown[]) => unknown]) => [
        name,
        (...given: unknown[]) => {
          snapshot.join();
          return read(...given);
        },
      ]),
    ),
  ]);
  return Object.fromEntries(joined) as Nouns;
}
