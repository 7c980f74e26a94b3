import type { Sessions } from "./client.ts";

/** How often it is asked what other processes have committed. */
const ASK_MS = 1_000;
/** How long a commit is remembered, by the database's clock. It may have been under way so long when its row was written. */
const KEPT_MS = 60_000;
/** How many old rows are deleted at a time. */
const DELETED_MAX = 10_000;

const NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::int8";
const COMMITTED = `SELECT id FROM commits WHERE instance <> $1::text AND at > ${NOW} - $2::int8`;
const DELETE_OLD = `DELETE FROM commits WHERE id IN (
  SELECT id FROM commits WHERE at < ${NOW} - $1::int8 LIMIT $2::int8 FOR UPDATE SKIP LOCKED)`;

/** What other processes that use the ledger have committed. */
export type Others = {
  /** Whether one of them has committed since this was last asked, as far as it is known: since a second ago it may not be. */
  haveCommitted(): boolean;
  stop(): void;
};

/** Asks now and then, beside everything else, and deletes what is old. */
export function followOthers(sessions: Sessions, process: string): Others {
  let known = new Set<string>();
  let isNews = false;
  let stopped = false;
  let timer: Timer | null = null;

  /** By an exchange, which ends: where packets are lost without a word, a plain query would be waited for without end. */
  async function ask(): Promise<void> {
    const session = await sessions.reserve();
    try {
      const [found = []] = await session.exchange([
        { text: COMMITTED, params: [process, BigInt(KEPT_MS)] },
        { text: DELETE_OLD, params: [BigInt(2 * KEPT_MS), BigInt(DELETED_MAX)] },
      ]);
      const ids = (found as readonly { readonly id: string }[]).map(({ id }) => id);
      isNews ||= ids.some((id) => !known.has(id));
      known = new Set(ids);
    } finally {
      session.release();
    }
  }

  function later(): void {
    if (stopped) return;
    timer = setTimeout(async () => {
      // Where the database cannot be reached, nobody can commit.
      await ask().catch(() => {});
      later();
    }, ASK_MS);
    timer.unref();
  }

  later();
  return {
    haveCommitted() {
      const news = isNews;
      isNews = false;
      return news;
    },
    stop() {
      stopped = true;
      if (timer) clearTimeout(timer);
    },
  };
}
