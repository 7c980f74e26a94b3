import type { Database } from "bun:sqlite";
import {
  type LedgerVersions,
  type NewerLedger,
  newerThan,
  newest,
  OLDEST_WRITER,
} from "../sql/ledger-version.ts";

/** The tables must be changed, which waits until the server of an older version has stopped. */
export class OlderServer extends Error {
  constructor() {
    super(
      "a server of an older version runs on it, and its tables must be changed for this one; stop that server, and start this version",
    );
  }
}

/** Why this version may not write to the ledger; null where it may. */
export function newerLedger(raw: Database, version: string): NewerLedger | null {
  const isThere = raw.query("SELECT 1 FROM sqlite_schema WHERE name = 'instances'").get() !== null;
  const row = isThere ? versionsOf(raw) : null;
  return row && newerThan(version, row);
}

/** Why this version knows nothing of a ledger whose tables had changes that it does not know. */
export const newerTables = (raw: Database, version: string): string =>
  `the ledger in it was written by Holdfast ${versionsOf(raw)?.version}, and has changes that this, which is ${version}, does not know; restore it with that version or a newer one`;

/** Keeps the newest version that has opened the ledger. Called once its tables are up to date. */
export function keepVersion(raw: Database, version: string): void {
  const row = versionsOf(raw);
  if (row && newest(version, row.version) !== row.version)
    raw.query("UPDATE instances SET version = ?").run(version);
  raiseOldestWriter(raw);
}

/** Keeps the oldest version that may write from now on. Called in the transaction that changes the tables, so that no older one comes between. */
export function raiseOldestWriter(raw: Database): void {
  const row = versionsOf(raw);
  if (row && newest(OLDEST_WRITER, row.oldest_writer) !== row.oldest_writer)
    raw.query("UPDATE instances SET oldest_writer = ?").run(OLDEST_WRITER);
}

const versionsOf = (raw: Database) =>
  raw.query<LedgerVersions, []>("SELECT version, oldest_writer FROM instances").get();
