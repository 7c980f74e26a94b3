import { FORGOTTEN } from "../sql/forgotten.ts";
import { createLogWriter } from "../sql/log.ts";
import type { Retention, Store } from "../store.ts";
import { BEGIN, COMMIT, ROLLBACK, type Session, type Statement } from "./client.ts";
import { placeOf } from "./columns.ts";
import type { Lanes } from "./lanes.ts";
import { lockStatements, NO_LOCKS } from "./locks.ts";
import { type Answers, fetchAnswers, type Lacking, type Replay } from "./replay.ts";
import { createWriteBuffer } from "./write-buffer.ts";

/** How many rows one piece of this work inserts at most: the tiles of a log that grows by some thousand entries are a few dozen. */
const ROWS_MAX = 1024;

/** The work of jobs, each piece in a transaction of its own. To do a piece again does no harm. */
export function createWork(
  lanes: Lanes,
  replay: Replay,
): Pick<Store, "extendLog" | "keepCheckpoint" | "keepStatement" | "forget" | "probe"> {
  const log = createLogWriter(replay.connection);
  const inLog = <Result>(work: () => Result) =>
    lanes.alone((session) => transact(session, "log", replay, work));
  return {
    extendLog: (entriesMax) => inLog(() => log.extend(entriesMax)),
    keepCheckpoint: (checkpoint) => inLog(() => log.keepCheckpoint(checkpoint)),
    keepStatement: (statement) => inLog(() => log.keepStatement(statement)),
    forget: (retention, rowsMax) => lanes.alone((session) => forget(session, retention, rowsMax)),
    probe: () => lanes.alone((session) => probe(session)),
  };
}

/** Reads and writes in one transaction, while nobody else does work of this name. */
async function transact<Result>(
  session: Session,
  name: string,
  replay: Replay,
  work: () => Result,
): Promise<Result> {
  const names = new Set([name]);
  const locking = lockStatements({ ...NO_LOCKS, names });
  const nextBlock = {
    text: "SELECT nextval('positions') AS block FROM generate_series(1, $1::int8)",
    params: [1n],
  };
  try {
    const begun = await session.exchange([BEGIN, ...locking, nextBlock]);
    const [first] = begun.at(-1) as readonly { readonly block: bigint }[];
    const buffer = createWriteBuffer(Array.from({ length: ROWS_MAX }, (_, at) => Number(first?.block) + at));
    const answers: Answers = new Map();
    for (;;) {
      const lacking: Lacking = new Map();
      const done = replay.attempt({ answers, lacking, writes: buffer }, work);
      if (done) {
        await commit(session, buffer.take());
        return done.result;
      }
      buffer.reset();
      await fetchAnswers(session, lacking, answers);
    }
  } catch (error) {
    await session.exchange([ROLLBACK]).catch(() => {});
    throw error;
  }
}

async function commit(session: Session, statements: readonly Statement[]): Promise<void> {
  const answers = await session.exchange([...statements, COMMIT]);
  if (answers.at(-1)?.command !== "COMMIT")
    throw new Error("PostgreSQL undid a transaction instead of committing it");
}

/** Deletes old rows. What somebody else has locked is left for the next time. */
async function forget(session: Session, retention: Retention, rowsMax: number): Promise<number> {
  const answers = await session.exchange(
    FORGOTTEN.map(([table, time, where]) => {
      const old = where.replace("?", "$1::int8");
      const place = placeOf(table);
      return {
        text: `DELETE FROM ${table} WHERE ${place} IN
          (SELECT ${place} FROM ${table} WHERE ${old} LIMIT $2::int8 FOR UPDATE SKIP LOCKED)`,
        params: [BigInt(retention[time]), BigInt(rowsMax)],
      };
    }),
  );
  return answers.reduce((forgotten, { count }) => forgotten + count, 0);
}

async function probe(session: Session): Promise<void> {
  const text =
    "INSERT INTO locks (name) VALUES ($1::text) ON CONFLICT (name) DO UPDATE SET name = excluded.name";
  await session.exchange([{ text, params: ["probe"] }]);
}
