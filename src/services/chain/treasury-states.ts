import type { Tally, TreasuryWatch } from "../../core/treasury-watch.ts";
import type { Reader } from "../../store/reader.ts";

/** A treasury as it was last compared with its chain. */
export type TreasuryState = {
  readonly watch: TreasuryWatch;
  /** How many transfers wait for a person; ten thousand at most are counted. */
  readonly unassigned: number;
  /** Deposits that are in no block any more, so that they are in no balance either. */
  readonly gone: Tally;
};

/**
 * The treasuries that were ever watched, oldest first. `watch.balance` is what each had at `watch.reconciled`, the last block at which
 * its transfers added up to it; `watch.stopped` says why nothing is credited since.
 */
export async function treasuryStates(reader: Reader): Promise<readonly TreasuryState[]> {
  const { treasuryWatches, chainTransfers } = reader;
  return Promise.all(
    (await treasuryWatches.list()).map(async (watch) => ({
      watch,
      unassigned: await chainTransfers.unassignedCount(watch.id),
      gone: await chainTransfers.gone(watch.id),
    })),
  );
}
