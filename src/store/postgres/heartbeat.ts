import type { Sessions, Statement } from "./client.ts";

/** After how long the row of a process that has ended is deleted, and how many such rows at a time. */
const KEPT = "1 minute";
const DELETED_MAX = 100n;
/** How many beats are remembered, each with the time at which it began. */
const REMEMBERED_MAX = 1_000;

const BEAT = `INSERT INTO heartbeats (process, number, at) VALUES ($1::text, $2::int8, clock_timestamp())
  ON CONFLICT (process) DO UPDATE SET number = excluded.number, at = excluded.at`;
const DELETE_OLD = `DELETE FROM heartbeats WHERE process IN (SELECT process FROM heartbeats
  WHERE at < clock_timestamp() - interval '${KEPT}' LIMIT $1::int8 FOR UPDATE SKIP LOCKED)`;

/**
 * The beats of a process: commits on the primary, made only so that they are seen. Whoever sees one sees all that was committed before
 * it began. So it is known what a replica lacks, by our own clock, and without asking the replica how much it has copied.
 */
export type Heartbeat = {
  /** Makes a beat that begins after the call. Answers its number. Whoever asks while one is under way shares the next. */
  beat(): Promise<number>;
  /** For how long what was committed may be missing where this beat is the newest that is seen, in milliseconds. */
  ageOf(beat: number): number;
  /** For how long the oldest beat after this one has been missing, in milliseconds; 0 where there is none. */
  lagAfter(beat: number): number;
};

/** @param process an id that no other process has */
export function createHeartbeat(sessions: Sessions, process: string, steadyNow: () => number): Heartbeat {
  /** When each beat began, by its number. Those that failed have none. */
  const begun = new Map<number, number>();
  let number = 0;
  let beating: Promise<unknown> = Promise.resolve();
  let next: Promise<number> | null = null;

  async function beatOnce(): Promise<number> {
    number += 1;
    const made = number;
    const begunAt = steadyNow();
    const session = await sessions.reserve();
    try {
      await session.exchange(statementsOf(process, made));
    } finally {
      session.release();
    }
    begun.set(made, begunAt);
    const [oldest] = begun.keys();
    if (begun.size > REMEMBERED_MAX && oldest !== undefined) begun.delete(oldest);
    return made;
  }

  return {
    beat() {
      next ??= beating
        .catch(() => {})
        .then(() => {
          next = null;
          const made = beatOnce();
          beating = made;
          return made;
        });
      return next;
    },
    ageOf(beat) {
      const begunAt = begun.get(beat);
      return begunAt === undefined ? Number.POSITIVE_INFINITY : steadyNow() - begunAt;
    },
    lagAfter(beat) {
      for (const [made, begunAt] of begun) if (made > beat) return steadyNow() - begunAt;
      return 0;
    },
  };
}

const statementsOf = (process: string, number: number): readonly Statement[] => [
  { text: BEAT, params: [process, BigInt(number)] },
  { text: DELETE_OLD, params: [DELETED_MAX] },
];
