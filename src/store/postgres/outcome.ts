import { BEGIN, commitWith, ROLLBACK, type Sessions } from "./client.ts";
import { UnfitFault } from "./ledger-watch.ts";
import { type Locks, lockStatements } from "./locks.ts";

/** Between two attempts to ask. */
const PAUSE_MS = 100;

/**
 * Finds the row of a transaction, and writes it again. The COMMIT of that is answered once a synchronous standby has it, and so the
 * transaction before it: the server shows what it has on its own disk, where somebody has ended its wait for the standby.
 */
const FIND = "UPDATE commits SET at = at WHERE id = $1::text RETURNING 1";

/**
 * Whether a transaction whose COMMIT was not answered took place; null where the database does not say in time. It is asked under the
 * same locks, which the transaction keeps as long as it may still commit.
 */
export async function outcomeOf(sessions: Sessions, id: string, locks: Locks): Promise<boolean | null> {
  const until = performance.now() + sessions.patience.unknownMs;
  while (performance.now() < until) {
    try {
      const session = await sessions.reserve(until - performance.now());
      try {
        await session.exchange([BEGIN, ...lockStatements(locks)]);
        const [found] = await session.exchange([{ text: FIND, params: [id] }]);
        if (found?.length === 0) return false;
        await commitWith(session, []);
        return true;
      } finally {
        await session.exchange([ROLLBACK]).catch(() => {});
        session.release();
      }
    } catch (error) {
      // Whatever became of it, it is not in this database.
      if (error instanceof UnfitFault) return null;
      await Bun.sleep(PAUSE_MS);
    }
  }
  return null;
}
