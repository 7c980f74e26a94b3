import type { Database } from "bun:sqlite";
import type { Reader } from "../store.ts";

/** A read transaction that the reads of one turn of the event loop share. */
export type ReadSnapshot = {
  /** Joins the turn's snapshot, or takes it. */
  readonly join: () => void;
  /** Ends it, so that the next read sees what was committed since. */
  readonly end: () => void;
};

/**
 * A read by itself locks and unlocks the file, which costs more than the look-up. The reads of one turn share a transaction
 * instead; it ends with the turn, and before any command is answered, so whoever has an answer reads what it says.
 */
export function createReadSnapshot(database: Database): ReadSnapshot {
  const begin = database.query("BEGIN");
  const commit = database.query("COMMIT");
  let taken = false;
  const end = () => {
    if (!taken) return;
    taken = false;
    commit.run();
  };
  return {
    join() {
      if (taken) return;
      taken = true;
      begin.run();
      setImmediate(end);
    },
    end,
  };
}

/** The reader, each of whose reads joins the snapshot. */
export function readingFrom(snapshot: ReadSnapshot, reader: Omit<Reader, "audit">): Omit<Reader, "audit"> {
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
  return Object.fromEntries(joined) as Omit<Reader, "audit">;
}
