import { SECOND_MS } from "../../core/time.ts";
import type { Sessions } from "./client.ts";

/** How long transactions may take that began before, and how often it is asked whether they have ended. */
const WAIT_MS_MAX = 30 * SECOND_MS;
const ASK_MS = 20;

const NEWEST = `SELECT coalesce(max(position), 0)::int8 AS position, pg_snapshot_xmax(pg_current_snapshot())::text AS began
  FROM postings`;
const HAVE_ENDED = "SELECT (pg_snapshot_xmin(pg_current_snapshot()) >= $1::text::xid8)::int4 AS ended";

/**
 * The position of a posting at and before which none is committed any more: a read that begins now sees all of them.
 *
 * Positions rise in the order of commits within an organisation's mode alone. Another transaction may have taken lower positions
 * before and commit them later. Each has its locks, and so its id, before its positions. So once all of those have ended that were
 * under way when the newest posting was read, nothing is missing before it.
 */
export async function lastPosting(sessions: Sessions): Promise<number> {
  const session = await sessions.reserve();
  try {
    const [newest] = await session.exchange([{ text: NEWEST, params: [] }]);
    const [{ position, began }] = newest as unknown as [{ position: bigint; began: string }];
    const until = performance.now() + WAIT_MS_MAX;
    for (;;) {
      const [answer] = await session.exchange([{ text: HAVE_ENDED, params: [began] }]);
      const [{ ended }] = answer as unknown as [{ ended: number }];
      if (ended === 1) return Number(position);
      if (performance.now() > until)
        throw new Error(
          "a transaction of the database server has not ended in 30 s, so it is not known what is owed at one moment",
        );
      await Bun.sleep(ASK_MS);
    }
  } finally {
    session.release();
  }
}
