import type { SQL } from "bun";

/** How often it is asked what other processes have committed. */
const ASK_MS = 1_000;
/** How long a commit is remembered, by the database's clock. It may have been under way so long when its row was written. */
const KEPT_MS = 60_000;
/** How many old rows are deleted at a time. */
const DELETED_MAX = 10_000;

/** What other processes that use the ledger have committed. */
export type Others = {
  /** Whether one of them has committed since this was last asked, as far as it is known: since a second ago it may not be. */
  haveCommitted(): boolean;
  stop(): void;
};

/** Asks now and then, beside everything else, and deletes what is old. */
export function followOthers(pool: SQL, process: string): Others {
  let known = new Set<string>();
  let isNews = false;
  let stopped = false;
  let timer: Timer | null = null;

  async function ask(): Promise<void> {
    const rows: { id: string }[] = await pool`
      SELECT id FROM commits WHERE instance <> ${process} AND at > (extract(epoch FROM clock_timestamp()) * 1000)::int8 - ${BigInt(KEPT_MS)}`;
    isNews ||= rows.some(({ id }) => !known.has(id));
    known = new Set(rows.map(({ id }) => id));
    await pool`DELETE FROM commits WHERE id IN (
      SELECT id FROM commits WHERE at < (extract(epoch FROM clock_timestamp()) * 1000)::int8 - ${BigInt(2 * KEPT_MS)}
      LIMIT ${BigInt(DELETED_MAX)} FOR UPDATE SKIP LOCKED)`;
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
