import type { Database } from "bun:sqlite";

/**
 * The oldest version that may write what this one writes. It is raised by a change that an older executable would get wrong: it
 * would not know a column that decides something, or an encoding.
 */
export const OLDEST_WRITER = "0.1.0";

/** The ledger must not be opened by this executable, which is too old for it. */
export class NewerLedger extends Error {}

/** @throws NewerLedger where the version is older than the oldest that may write to the ledger */
export function refuseNewerLedger(raw: Database, version: string): void {
  const isThere = raw.query("SELECT 1 FROM sqlite_schema WHERE name = 'instances'").get() !== null;
  if (!isThere) return;
  const row = raw
    .query<{ version: string; oldest_writer: string }, []>("SELECT version, oldest_writer FROM instances")
    .get();
  if (row && Bun.semver.order(version, row.oldest_writer) < 0)
    throw new NewerLedger(
      `the ledger in it was written by Holdfast ${row.version}, and may be opened by ${row.oldest_writer} or newer; this is ${version}`,
    );
}

/** Keeps which version has opened the ledger, where that is newer than all before. Called once its tables are up to date. */
export function keepVersion(raw: Database, version: string): void {
  const row = raw.query<{ version: string }, []>("SELECT version FROM instances").get();
  if (row && Bun.semver.order(version, row.version) > 0)
    raw.query("UPDATE instances SET version = ?, oldest_writer = ?").run(version, OLDEST_WRITER);
}
