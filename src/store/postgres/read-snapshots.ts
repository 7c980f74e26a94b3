import type { Reader } from "../reader.ts";
import { createReaders } from "../sql/readers/of-snapshot.ts";
import type { SqlReader } from "../sql/readers/sql-reader.ts";
import { BEGIN_SNAPSHOT, COMMIT, type Session, type Sessions } from "./client.ts";
import { type Answers, fetchAnswers, type Lacking, type Replay } from "./replay.ts";

/** How many connections reads may use. */
export const SNAPSHOTS_MAX = 8;
/**
 * How many answers a snapshot remembers, roughly. Who asks for the same soon asks the server once; a long piece of work, which reads a
 * table page after page, does not keep all of it in memory.
 */
const ANSWERS_MAX = 100;

/** Asks statements in a snapshot, beside its readers. */
type AskIn = <Result>(work: () => Result) => Promise<Result>;

/** Read transactions that requests share. */
export type ReadSnapshots = {
  /** Reads from a snapshot of everything that the server had before the call. The snapshot ends with `use`. */
  read<Result>(use: (reader: Reader, ask: AskIn) => Result | Promise<Result>): Promise<Result>;
  /** Called after a commit: later reads begin a new snapshot. */
  refresh(): void;
  close(): Promise<void>;
};

type Snapshot = {
  readonly session: Promise<Session>;
  readonly answers: Answers;
  readonly reader: Reader;
  /** What its readers wait for, and the exchange that will bring it. */
  lacking: Lacking;
  fetching: Promise<void> | null;
  /** Its transaction begins with the first statement that is read in it. */
  hasBegun: boolean;
  users: number;
  /** How many reads are under way: each needs all of its answers at once. */
  reading: number;
};

/**
 * Reads that begin in the same turn of the event loop share one transaction and its connection: REPEATABLE READ, so that all of them see
 * the ledger as it was at its first statement. Nobody joins it after that turn or after a commit of this process, so a caller who got an
 * answer can read what it says.
 */
export function createReadSnapshots(sessions: Sessions, replay: Replay, sqlReader: SqlReader): ReadSnapshots {
  const waiting: (() => void)[] = [];
  const readerOf = createReaders<Snapshot>(sqlReader, replayed);
  let opened = 0;
  let current: Snapshot | null = null;
  let closed = false;

  function begin(): Snapshot | null {
    if (opened === SNAPSHOTS_MAX) return null;
    opened += 1;
    const session = sessions.reserve();
    // Who reads hears of it. A snapshot that nobody reads from has no other way to say it.
    session.catch(() => {});
    const snapshot = {
      ...{ session, answers: new Map(), lacking: new Map(), fetching: null, hasBegun: false },
      ...{ users: 0, reading: 0 },
    } as unknown as Snapshot;
    return Object.assign(snapshot, { reader: readerOf(snapshot) });
  }

  /** Reads as often as an answer is missing. */
  async function replayed<Result>(snapshot: Snapshot, work: () => Result): Promise<Result> {
    snapshot.reading += 1;
    try {
      for (;;) {
        const done = replay.attempt(snapshot, work);
        if (done) return done.result;
        snapshot.fetching ??= fetch(snapshot);
        await snapshot.fetching;
      }
    } finally {
      snapshot.reading -= 1;
      if (snapshot.reading === 0 && snapshot.answers.size > ANSWERS_MAX) snapshot.answers.clear();
    }
  }

  async function end({ session, hasBegun }: Snapshot): Promise<void> {
    try {
      const connection = await session;
      if (hasBegun) await connection.exchange([COMMIT]).catch(() => {});
      connection.release();
    } catch {
      // It could not be reached: who wanted to read was told.
    }
    opened -= 1;
    for (const free of waiting.splice(0)) free();
  }

  function leave(snapshot: Snapshot): void {
    snapshot.users -= 1;
    if (snapshot.users === 0 && snapshot !== current) void end(snapshot);
  }

  function refresh(): void {
    const snapshot = current;
    current = null;
    if (snapshot?.users === 0) void end(snapshot);
  }

  async function join(): Promise<Snapshot> {
    while (current === null) {
      if (closed) throw new Error("the store is closed");
      const begun = begin();
      current = begun;
      if (begun === null) await new Promise<void>((free) => waiting.push(free));
      else
        setImmediate(() => {
          if (begun === current) refresh();
        });
    }
    current.users += 1;
    return current;
  }

  return {
    async read(use) {
      const snapshot = await join();
      try {
        return await use(snapshot.reader, (work) => replayed(snapshot, work));
      } finally {
        leave(snapshot);
      }
    },
    refresh,
    async close() {
      closed = true;
      refresh();
      while (opened > 0) await new Promise<void>((free) => waiting.push(free));
    },
  };
}

/** Fetches what all readers of a snapshot wait for: the first time what those of this turn of the event loop do. */
async function fetch(snapshot: Snapshot): Promise<void> {
  await (snapshot.hasBegun ? null : new Promise<void>((next) => setImmediate(next)));
  const session = await snapshot.session;
  const { lacking, hasBegun } = snapshot;
  snapshot.lacking = new Map();
  snapshot.fetching = null;
  snapshot.hasBegun = true;
  await fetchAnswers(session, lacking, snapshot.answers, hasBegun ? [] : [BEGIN_SNAPSHOT]);
}
