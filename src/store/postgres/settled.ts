import { ConnectionLost, inTime, LATE, type Sessions } from "./client.ts";
import type { Heartbeat } from "./heartbeat.ts";

/**
 * Connections on which nothing is seen that a synchronous standby may lack.
 *
 * A COMMIT is answered, and shown to others, once the standby has it. But after a crash a primary shows all that is on its own disk,
 * and of that the standby may lack the last: if the primary is lost then, it never happened. A later commit is answered once the standby
 * has it and all before it. So where a connection was lost, and at the beginning, one is made before anything is read or written.
 *
 * @param heartbeat commits, on connections of which this is not asked
 * @param losses how many connections have been lost; a connection to a server that has crashed is opened only after one was
 */
export function settled(
  sessions: Sessions,
  heartbeat: Pick<Heartbeat, "beat">,
  losses: () => number,
): Sessions {
  /** How many connections had been lost when the last commit began that was answered. */
  let settledAt = -1;

  async function settle(): Promise<void> {
    const begunAt = losses();
    await heartbeat.beat();
    settledAt = Math.max(settledAt, begunAt);
  }

  return {
    ...{ health: sessions.health, patience: sessions.patience },
    async reserve(exchangeMs = sessions.patience.exchangeMs) {
      const until = performance.now() + exchangeMs;
      for (;;) {
        while (settledAt < losses())
          if ((await inTime(settle(), until - performance.now())) === LATE)
            throw new ConnectionLost(
              "PostgreSQL has committed nothing in time: its synchronous standby may be away",
            );
        const session = await sessions.reserve(exchangeMs);
        if (settledAt >= losses()) return session;
        session.release();
      }
    },
  };
}
