import type { Database } from "bun:sqlite";

/**
 * The oldest version that may write what this one writes. It is raised by a change that an older executable would get wrong: it
 * would not know a column that decides something, or an encoding.
 */
export const OLDEST_WRITER = "0.1.0";

/** The ledger must not be opened by this executable, which is too old for it. */
export class NewerLedger extends Error {}

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
  return row && Bun.semver.order(version, row.oldest_writer) < 0
    ? new NewerLedger(
        `the ledger in it was written by Holdfast ${row.version}, and may be opened by ${row.oldest_writer} or newer; this is ${version}`,
      )
    : null;
}

/** Why this version knows nothing of a ledger whose tables had changes that it does not know. */
export const newerTables = (raw: Database, version: string): string =>
  `the ledger in it was written by Holdfast ${versionsOf(raw)?.version}, and has changes that this, which is ${version}, does not know; restore it with that version or a newer one`;

/** Keeps the newest version that has opened the ledger. Called once its tables are up to date. */
export function keepVersion(raw: Database, version: string): void {
  const row = versionsOf(raw);
  if (row && Bun.semver.order(version, row.version) > 0)
    raw.query("UPDATE instances SET version = ?").run(version);
  raiseOldestWriter(raw);
}

/** Keeps the oldest version that may write from now on. Called in the transaction that changes the tables, so that no older one comes between. */
export function raiseOldestWriter(raw: Database): void {
  const row = versionsOf(raw);
  if (row && Bun.semver.order(OLDEST_WRITER, row.oldest_writer) > 0)
    raw.query("UPDATE instances SET oldest_writer = ?").run(OLDEST_WRITER);
}

const versionsOf = (raw: Database) =>
  raw
    .query<{ version: string; oldest_writer: string }, []>("SELECT version, oldest_writer FROM instances")
    .get();
