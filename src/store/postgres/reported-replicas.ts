import type { ReplicaFigures } from "../../core/database.ts";
import { SECOND_MS } from "../../core/time.ts";
import type { Sessions, Statement } from "./client.ts";

/** How long an answer is good: anybody may ask whether a server is ready, as often as they like. */
const KEPT_MS = SECOND_MS;

/** Where a replica has everything, the server soon says no lag at all. Those of one name are one, which is as late as the latest of them. */
const REPORTED: Statement = {
  text: `SELECT application_name AS name, bool_and(sync_state IN ('sync', 'quorum')) AS "isSynchronous",
      max(CASE WHEN replay_lsn >= pg_current_wal_flush_lsn() THEN 0
        ELSE extract(epoch FROM replay_lag) * 1000 END)::float8 AS "lagMs"
    FROM pg_stat_replication WHERE state IS NOT NULL GROUP BY application_name ORDER BY application_name
    LIMIT $1::int8`,
  params: [1_000n],
};

/**
 * The replicas that a server reports; none where it reports none, cannot be asked, or does not tell this user. Whoever asks while it is
 * asked, or soon after, shares the answer.
 *
 * @param steadyNow a clock that never jumps, in milliseconds
 */
export function reportedReplicas(
  sessions: Sessions,
  steadyNow: () => number,
): () => Promise<readonly ReplicaFigures[]> {
  let asked: Promise<readonly ReplicaFigures[]> | null = null;
  let goodUntil = Number.POSITIVE_INFINITY;
  return () => {
    if (asked === null || steadyNow() >= goodUntil) {
      goodUntil = Number.POSITIVE_INFINITY;
      asked = ask(sessions).finally(() => {
        goodUntil = steadyNow() + KEPT_MS;
      });
    }
    return asked;
  };
}

async function ask(sessions: Sessions): Promise<readonly ReplicaFigures[]> {
  try {
    const session = await sessions.reserve();
    try {
      const [reported = []] = await session.exchange([REPORTED]);
      return [...(reported as readonly ReplicaFigures[])];
    } finally {
      session.release();
    }
  } catch {
    return [];
  }
}
