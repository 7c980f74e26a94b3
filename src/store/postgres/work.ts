import { FORGOTTEN } from "../sql/forgotten.ts";
import { type LedgerVersions, newerThan } from "../sql/ledger-version.ts";
import { createLogWriter } from "../sql/log.ts";
import type { Retention, Store } from "../store.ts";
import { type BatchParts, commitRow } from "./batch-run.ts";
import { nextBlocks, positionsOf } from "./blocks.ts";
import { type Answer, BEGIN, commitWith, ROLLBACK, type Session, type Statement } from "./client.ts";
import { placeOf } from "./columns.ts";
import type { Lanes } from "./lanes.ts";
import type { LedgerWatch } from "./ledger-watch.ts";
import { lockStatements, NO_LOCKS } from "./locks.ts";
import { type Answers, fetchAnswers, type Lacking, type Replay } from "./replay.ts";
import { createWriteBuffer } from "./write-buffer.ts";

/** The work of jobs, each piece in a transaction of its own. To do a piece again does no harm. */
export function createWork(
  lanes: Lanes,
  parts: Pick<BatchParts, "replay" | "process" | "version" | "newsTextOf">,
  watch: LedgerWatch,
): Pick<Store, "extendLog" | "keepCheckpoint" | "keepStatement" | "forget" | "probe"> {
  const { replay, version } = parts;
  const log = createLogWriter(replay.connection, true);
  /** A newer executable may have changed the tables since this process has opened the ledger. */
  const refuseNewer = (versions: Answer | undefined): void => {
    const [ledger] = (versions ?? []) as readonly LedgerVersions[];
    const newer = ledger && newerThan(version, ledger);
    if (newer) throw watch.foundNewer(newer);
  };
  const inLog = <Result>(work: () => Result) =>
    lanes.alone(async (session) => {
      const id = crypto.randomUUID();
      const last = commitRow(id, [], parts);
      const result = await transact(session, { name: "log", replay, work, last, refuseNewer });
      watch.committed("log", id);
      return result;
    });
  return {
    extendLog: (entriesMax) => inLog(() => log.extend(entriesMax)),
    keepCheckpoint: (checkpoint) => inLog(() => log.keepCheckpoint(checkpoint)),
    keepStatement: (statement) => inLog(() => log.keepStatement(statement)),
    forget: (retention, rowsMax) =>
      lanes.alone(async (session) => {
        const [versions] = await session.exchange([VERSIONS]);
        refuseNewer(versions);
        return forget(session, retention, rowsMax);
      }),
    probe: () => lanes.alone((session) => probe(session)),
  };
}

/** The newest version that has opened the ledger, and the oldest that may write to it. */
const VERSIONS: Statement = {
  text: "SELECT version, oldest_writer FROM instances LIMIT $1::int8",
  params: [1n],
};

type LockedWork<Result> = {
  /** Nobody else does work of this name meanwhile. */
  readonly name: string;
  readonly replay: Replay;
  readonly work: () => Result;
  /** Is sent with the COMMIT. */
  readonly last: Statement;
  /** Throws where the ledger's versions say that this process may not write to it. */
  readonly refuseNewer: (versions: Answer | undefined) => void;
};

/** Reads and writes in one transaction. It inserts few rows: one block is enough. */
async function transact<Result>(
  session: Session,
  { name, replay, work, last, refuseNewer }: LockedWork<Result>,
): Promise<Result> {
  const names = new Set([name]);
  const locking = lockStatements({ ...NO_LOCKS, names });
  try {
    // The versions are read under the locks: whoever changes the tables waits for these (`migrate.ts`).
    const begun = await session.exchange([BEGIN, ...locking, VERSIONS, nextBlocks(1)]);
    refuseNewer(begun.at(-2));
    const buffer = createWriteBuffer(positionsOf(begun.at(-1)));
    const answers: Answers = new Map();
    for (;;) {
      const lacking: Lacking = new Map();
      const done = replay.attempt({ answers, lacking, writes: buffer }, work);
      if (done) {
        await commitWith(session, [...buffer.take(), last]);
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
