import { ContendedFault } from "../../core/errors.ts";
import { sqlStateOf } from "./client.ts";
import type { ReadSnapshots } from "./read-snapshots.ts";

/**
 * Failures that say only that another transaction was in the way, and nothing of what was asked: a serialisation failure, a deadlock, and
 * a lock that was not free in time.
 */
export const OF_OTHERS: ReadonlySet<string> = new Set(["40001", "40P01", "55P03"]);
/** How often what others were in the way of begins again. */
export const TRIES_MAX = 3;
/** How long it waits before, at random, so that two do not meet again. */
const WAIT_MS = { min: 10, max: 100 };

export const pauseAtRandom = (): Promise<void> =>
  Bun.sleep(WAIT_MS.min + Math.random() * (WAIT_MS.max - WAIT_MS.min));

/** After a statement of another read failed in the transaction that they share, which is undone since. */
const UNDONE = "25P02";

type Read = ReadSnapshots["read"];

/**
 * Reads again from a new snapshot where other transactions were in the way, such as one that changes the tables.
 *
 * @throws ContendedFault where they still are after `TRIES_MAX` times
 */
export const readAgain =
  (read: Read): Read =>
  async (use) => {
    for (let tries = 0; ; tries++) {
      try {
        return await read(use);
      } catch (error) {
        const state = sqlStateOf(error) ?? "";
        if (!OF_OTHERS.has(state) && state !== UNDONE) throw error;
        if (tries === TRIES_MAX)
          throw new ContendedFault("others were in the way of a read", { cause: error });
      }
      await pauseAtRandom();
    }
  };
