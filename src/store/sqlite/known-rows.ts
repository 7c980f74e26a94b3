import type { Database } from "bun:sqlite";
import type { Row } from "../store.ts";

/** Rows of one kind that are kept at most. Beyond them all of the kind are read again. */
const ROWS_MAX = 10_000;

type Kind = Row["kind"];

/**
 * What seldom changes and every command asks for, kept from one transaction to the next: organisations, agents, keys,
 * policies. It is exact: only this process's Changes and other processes' commits can change it, and both are noticed.
 */
export type KnownRows = {
  /** What the look-up gives, made once. `key` says everything that it depends on. */
  get<Value>(kind: Kind, key: string, look: () => Value): Value;
  /** A row of the kind was written. */
  forget(kind: Kind): void;
  /** A transaction was undone, and with it what was read in it. */
  forgetAll(): void;
  /** A transaction has begun, with the ledger locked: forgets everything where another process has written since the last. */
  begin(): void;
};

export function createKnownRows(writer: Database): KnownRows {
  const dataVersion = writer.query<{ data_version: bigint }, []>("PRAGMA data_version");
  const known = new Map<Kind, Map<string, unknown>>();
  let version: bigint | undefined;
  return {
    get<Value>(kind: Kind, key: string, look: () => Value): Value {
      let rows = known.get(kind);
      if (rows === undefined || rows.size >= ROWS_MAX) {
        rows = new Map();
        known.set(kind, rows);
      }
      const row = rows.get(key) as Value | undefined;
      if (row !== undefined) return row;
      const found = look();
      rows.set(key, found);
      return found;
    },
    forget: (kind) => void known.delete(kind),
    forgetAll: () => known.clear(),
    begin() {
      const current = dataVersion.get()?.data_version;
      if (current !== version) known.clear();
      version = current;
    },
  };
}
