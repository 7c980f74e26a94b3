/**
 * The oldest version that may write what this one writes. It is raised by a change that an older executable would get wrong: it
 * would not know a column that decides something, or an encoding.
 */
export const OLDEST_WRITER = "0.1.0";

/** The newest version that has opened a ledger, and the oldest that may write to it. */
export type LedgerVersions = { readonly version: string; readonly oldest_writer: string };

/** The ledger must not be opened by this executable, which is too old for it. */
export class NewerLedger extends Error {}

/** Why this version may not write to a ledger of these versions; null where it may. */
export const newerThan = (version: string, ledger: LedgerVersions): NewerLedger | null =>
  Bun.semver.order(version, ledger.oldest_writer) < 0
    ? new NewerLedger(
        `the ledger in it was written by Holdfast ${ledger.version}, and may be opened by ${ledger.oldest_writer} or newer; this is ${version}`,
      )
    : null;

/** The newer of two versions. */
export const newest = (one: string, other: string): string =>
  Bun.semver.order(one, other) > 0 ? one : other;
