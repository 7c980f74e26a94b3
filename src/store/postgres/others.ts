import type { Session, Sessions } from "./client.ts";
import { KEPT_MS_MAX, type LedgerWatch } from "./ledger-watch.ts";
import { arrayOf } from "./values.ts";

/** How often it is asked what other processes have committed. */
const ASK_MS = 1_000;
/**
 * How far back commits of others are looked for, by the database's clock. Their rows have the time at which they were written, and are
 * seen only after the COMMIT, which may come so much later.
 */
const KEPT_MS = 60_000;
/** How many old rows are deleted at a time. */
const DELETED_MAX = 10_000;

const NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::int8";
const COMMITTED = `SELECT id FROM commits WHERE instance <> $1::text AND at > ${NOW} - $2::int8`;
const NEWS =
  "SELECT DISTINCT CASE WHEN version = $2::text THEN news END AS news FROM commits WHERE id = ANY($1::text[])";
/** How many news are kept until somebody takes them. Of more it is only known that there are some. */
const NEWS_MAX = 1_000;
/** After so long without an answer, by the database's clock, there may be commits that are too old to be found. */
const UNASKED_MS_MAX = KEPT_MS / 2;
/** How far the database's clock may differ from ours between two times that it is asked, and how long it must have gone evenly. */
const JUMP_MS = 30_000;
const EVEN_MS = 60_000;

/**
 * A process deletes its own rows soon, and those of others when these do not look for them any more. It gives those that
 * it may look for a new time now and then, so that no other process deletes them.
 */
const DELETE_OWN = `DELETE FROM commits WHERE id IN (
  SELECT id FROM commits WHERE at BETWEEN ${NOW} - 2 * $1::int8 AND ${NOW} - $1::int8 AND instance = $2::text
    AND id <> ALL($3::text[]) LIMIT $4::int8)`;
const KEEP_YOUNG = `UPDATE commits SET at = ${NOW} WHERE id = ANY($1::text[]) AND at < ${NOW} - $2::int8`;
const DELETE_OLD = `DELETE FROM commits WHERE id IN (
  SELECT id FROM commits WHERE at < ${NOW} - $1::int8 LIMIT $2::int8 FOR UPDATE SKIP LOCKED)`;

/** What other processes that use the ledger have committed. */
export type Others = {
  /**
   * The news of what they have committed since this was last asked, as far as it is known: since a second ago it may not be. Null where
   * that may be anything.
   */
  news(): readonly string[] | null;
  stop(): void;
};

/** Asks now and then, beside everything else, and deletes what is old. It also finds out whether the ledger became an older one. */
export function followOthers(
  sessions: Sessions,
  { process, version }: { readonly process: string; readonly version: string },
  watch: LedgerWatch,
): Others {
  let known = new Set<string>();
  let askedAt: number | null = null;
  let news: Set<string> | null = new Set();
  let stopped = false;
  const isEven = watchClock();
  let timer: Timer | null = null;

  /** By an exchange, which ends: where packets are lost without a word, a plain query would be waited for without end. */
  async function ask(): Promise<void> {
    const session = await sessions.reserve();
    try {
      await watch.verify(session);
      const own = arrayOf("text", watch.needed());
      const [found = [], [clock] = []] = await session.exchange([
        { text: COMMITTED, params: [process, BigInt(KEPT_MS)] },
        { text: `SELECT ${NOW} + $1::int8 AS now`, params: [0n] },
        { text: KEEP_YOUNG, params: [own, BigInt(KEPT_MS_MAX / 2)] },
      ]);
      const now = Number((clock as { readonly now: bigint }).now);
      if (isEven(now))
        await session.exchange([
          { text: DELETE_OWN, params: [BigInt(2 * KEPT_MS), process, own, BigInt(DELETED_MAX)] },
          { text: DELETE_OLD, params: [BigInt(KEPT_MS_MAX), BigInt(DELETED_MAX)] },
        ]);
      const ids = (found as readonly { readonly id: string }[]).map(({ id }) => id);
      const isLate = askedAt !== null && now - askedAt > UNASKED_MS_MAX;
      const unknown = ids.filter((id) => !known.has(id));
      const heard = isLate ? null : await hear(session, unknown);
      news = news && heard && news.union(heard);
      known = new Set(ids);
      askedAt = now;
    } finally {
      session.release();
    }
  }

  /** The news of these commits; null where they may be anything. Where that is so already, it is not asked. */
  async function hear(session: Session, ids: readonly string[]): Promise<Set<string> | null> {
    if (ids.length === 0) return new Set();
    if (news === null || news.size + ids.length > NEWS_MAX) return null;
    const [rows = []] = await session.exchange([{ text: NEWS, params: [arrayOf("text", ids), version] }]);
    const found = new Set((rows as readonly { readonly news: string | null }[]).map((row) => row.news));
    return found.has(null) ? null : (found as Set<string>);
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
    news() {
      const heard = news && [...news];
      news = new Set();
      return heard;
    },
    stop() {
      stopped = true;
      if (timer) clearTimeout(timer);
    },
  };
}

/**
 * Whether the database's clock has gone as ours does for a minute. After a jump forwards all rows look old, and each process needs a
 * moment to make its own young again.
 *
 * @param steadyNow ours, which never jumps
 */
export function watchClock(steadyNow = () => performance.now()): (databaseNow: number) => boolean {
  let ahead: number | null = null;
  let evenSince = steadyNow();
  return (databaseNow) => {
    const now = steadyNow();
    const aheadNow = databaseNow - now;
    if (ahead === null || Math.abs(aheadNow - ahead) > JUMP_MS) evenSince = now;
    ahead = aheadNow;
    return now - evenSince > EVEN_MS;
  };
}
