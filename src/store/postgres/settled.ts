import { ConnectionLost, type Sessions } from "./client.ts";
import type { Heartbeat } from "./heartbeat.ts";
import { inTime, LATE } from "./in-time.ts";
import { UnfitFault } from "./ledger-watch.ts";

/**
 * Connections on which nothing is seen that a synchronous standby may lack.
 *
 * A COMMIT is answered, and shown to others, once the standby has it. But after a crash a primary shows all that is on its own disk,
 * and of that the standby may lack the last: if the primary is lost then, it never happened. A later commit is answered once the standby
 * has it and all before it. So where a connection was opened, which may be to a server that has crashed, one is made before anything is
 * read or written.
 *
 * @param heartbeat makes such a commit, on connections that need none before
 * @param opened how many connections have been opened
 */
export function settled(
  sessions: Sessions,
  heartbeat: Pick<Heartbeat, "beat">,
  opened: () => number,
): Sessions {
  /** How many connections had been opened when the last commit began that was answered. */
  let settledAt = -1;

  /**
   * Makes the commit. Whatever it fails by counts as a lost connection, and never as a failure of what the caller wants to do: where the
   * standby is away, an earlier commit of ours may still wait for it, and the next one finds the row locked.
   */
  async function settle(): Promise<void> {
    const begunAt = opened();
    await heartbeat.beat().catch((error: unknown) => {
      if (error instanceof ConnectionLost || error instanceof UnfitFault) throw error;
      throw new ConnectionLost("PostgreSQL commits nothing: its synchronous standby may be away", {
        cause: error,
      });
    });
    settledAt = Math.max(settledAt, begunAt);
  }

  return {
    ...{ health: sessions.health, patience: sessions.patience },
    async reserve(exchangeMs = sessions.patience.exchangeMs) {
      const until = performance.now() + exchangeMs;
      for (;;) {
        while (settledAt < opened())
          if ((await inTime(settle(), until - performance.now())) === LATE)
            throw new ConnectionLost(
              "PostgreSQL has committed nothing in time: its synchronous standby may be away",
            );
        const session = await sessions.reserve(exchangeMs);
        if (settledAt >= opened()) return session;
        session.release();
      }
    },
  };
}
