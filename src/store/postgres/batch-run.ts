import { type AnyCommand, type BatchTime, createBatch } from "../batch.ts";
import type { Write } from "../change.ts";
import { changesKept, createRowCache, type Missing, type RowCache } from "../row-cache.ts";
import { INSTANCE_KEY } from "../rows.ts";
import type { Apply } from "../sql/apply.ts";
import { newerThan } from "../sql/ledger-version.ts";
import type { LoadOne } from "../sql/load.ts";
import type { Names } from "../sql/names.ts";
import type { Positions } from "../sql/positions.ts";
import type { IndexName } from "../view.ts";
import { BLOCK, nextBlocks, positionsOf } from "./blocks.ts";
import { BEGIN, ConnectionLost, commitWith, ROLLBACK, type Session, type Statement } from "./client.ts";
import type { KeptRows } from "./kept-rows.ts";
import type { LedgerWatch } from "./ledger-watch.ts";
import { type Locks, lockStatements, missingLocks, recordedStatement, standingOf } from "./locks.ts";
import { type Answers, fetchAnswers, type Lacking, type Replay } from "./replay.ts";
import { createWriteBuffer, PositionsUsedUp, type WriteBuffer } from "./write-buffer.ts";

/** What a batch works with. */
export type BatchParts = {
  readonly replay: Replay;
  readonly loadOne: LoadOne;
  readonly apply: Apply;
  readonly positions: Positions;
  readonly names: Names;
  /** The times of a batch whose scopes have recorded until then. */
  readonly timeAfter: (recordedAt: number) => BatchTime;
  /** Is told which transactions may be looked for. */
  readonly watch: Pick<LedgerWatch, "sends" | "decided">;
  /** What is kept from one batch to the next. */
  readonly kept: KeptRows;
  /** This process, among those that use the ledger. */
  readonly process: string;
  /** The version of this executable. */
  readonly version: string;
  readonly newsTextOf: NewsTextOf;
};

/** What other instances of the same version are told of writes; null where these may be anything to them. */
export type NewsTextOf = (writes: readonly Write[]) => string | null;

/** What a batch has decided, once it is committed. */
export type Committed = {
  /** The id of the transaction; null where it changed nothing, and was not committed. */
  readonly id: string | null;
  readonly answers: readonly unknown[];
  readonly writes: readonly Write[];
  readonly time: BatchTime;
  /** Keeps what it has read for the next batch of its lane. Called when it is committed: if this fails, nothing is decided again. */
  readonly keep: () => void;
};

/** The batch writes what it has not locked. It begins again with these locks. */
export class LocksMissing extends Error {
  constructor(readonly locks: Locks) {
    super("a batch writes what it has not locked");
  }
}

/** The connection ended while a COMMIT was under way: the transaction of this id may be there or not. */
export class OutcomeUnknown extends Error {
  constructor(
    readonly id: string,
    readonly committed: Committed,
    options: ErrorOptions,
  ) {
    super("it is not known whether a transaction was committed", options);
  }
}

/** How many rows a command writes, roughly: a batch knows only at the end how many positions it needs. */
const ROWS_OF_COMMAND = 10;
/** How many blocks a batch takes, by how often it was tried. */
const blocksOf = (commands: number, tries: number): number =>
  (1 + Math.floor((commands * ROWS_OF_COMMAND) / BLOCK)) * 4 ** tries;

/** The commands of a batch. */
export type Commands = {
  readonly commands: readonly AnyCommand[];
  /** What they name. */
  readonly locks: Locks;
  /** Called once when the locks are held, which may take long. Answers more commands that need no others, at most so many. */
  readonly join?: (most: number) => readonly AnyCommand[];
};

/**
 * Decides commands in one transaction, and commits it. A batch of commands that find all they need at the first look takes three round
 * trips: the locks, what they read, and what they write with the COMMIT.
 *
 * @param tries how often the positions were too few
 */
export async function runBatch(
  session: Session,
  batch: Commands,
  parts: BatchParts,
  tries = 0,
): Promise<Committed> {
  let { commands } = batch;
  const join = (most: number): readonly AnyCommand[] => {
    const joined = batch.join?.(most) ?? [];
    commands = [...commands, ...joined];
    return joined;
  };
  try {
    return await decideAndCommit(session, { ...batch, join }, parts, tries);
  } catch (error) {
    parts.positions.forget();
    parts.names.forget();
    if (error instanceof ConnectionLost || error instanceof OutcomeUnknown) throw error;
    await session.exchange([ROLLBACK]);
    if (error instanceof PositionsUsedUp)
      return runBatch(session, { commands, locks: batch.locks }, parts, tries + 1);
    throw error;
  }
}

async function decideAndCommit(
  session: Session,
  { commands: first, locks, join }: Required<Commands>,
  parts: BatchParts,
  tries: number,
): Promise<Committed> {
  const locking = lockStatements(locks);
  const blocks = blocksOf(first.length, tries);
  const begun = await session.exchange([BEGIN, ...locking, nextBlocks(blocks)]);
  const commands = [...first, ...join(Math.floor((blocks * BLOCK) / ROWS_OF_COMMAND) - first.length)];
  const standing = standingOf(begun[locking.length]);
  const time = parts.timeAfter(standing.recordedAt);
  const buffer = createWriteBuffer(positionsOf(begun.at(-1)));
  const cache = createRowCache();
  parts.kept.fill(cache, locks.scopes, standing);
  const run = createRun(session, parts, { buffer, locks, cache });
  const answers = await run.decideAll(commands, time);
  const writes = run.written();
  const changes = buffer.take();
  const isOther = writes.some(changesKept);
  const id = writes.length === 0 ? null : crypto.randomUUID();
  const keep = () => (isOther ? undefined : parts.kept.keep(cache, locks.scopes, standing));
  const committed = { id, answers, writes, time, keep };
  if (id === null) await session.exchange([ROLLBACK]);
  else {
    const recorded = recordedStatement(locks, time.recordedAt, isOther);
    parts.watch.sends(id);
    const statements = [...changes, recorded, commitRow(id, writes, parts)];
    await commit(session, statements, { id, committed }).catch((error: unknown) => {
      if (!(error instanceof OutcomeUnknown)) parts.watch.decided(id);
      throw error;
    });
  }
  return committed;
}

async function commit(
  session: Session,
  statements: readonly Statement[],
  { id, committed }: { readonly id: string; readonly committed: Committed },
): Promise<void> {
  try {
    await commitWith(session, statements);
  } catch (error) {
    if (error instanceof ConnectionLost) throw new OutcomeUnknown(id, committed, { cause: error });
    throw error;
  }
}

/** Says of a transaction that it was committed, and what it wrote. */
export const commitRow = (
  id: string,
  writes: readonly Write[],
  { process, version, newsTextOf }: Pick<BatchParts, "process" | "version" | "newsTextOf">,
): Statement => ({
  text: `INSERT INTO commits (id, instance, at, version, news)
    VALUES ($1::text, $2::text, (extract(epoch FROM clock_timestamp()) * 1000)::int8, $3::text, $4::text)`,
  params: [id, process, version, newsTextOf(writes)],
});

/** A newer executable may have changed the tables since this process has opened the ledger. */
function refuseNewer(cache: RowCache, version: string): Error | null | undefined {
  const instance = cache.row("instance", INSTANCE_KEY);
  return instance && newerThan(version, { version: instance.version, oldest_writer: instance.oldestWriter });
}

const makesOrganisation = (write: Write): boolean =>
  write.kind === "put" && write.put.kind === "organisation" && write.put.before === null;

type Work = () => void;

const loadsOf = ({ rows, indexes }: Missing, { row, index }: LoadOne, cache: RowCache): readonly Work[] => [
  ...[...rows].flatMap(([kind, keys]) => [...keys].map((key) => () => row(kind, key, cache))),
  ...[...indexes].flatMap(([name, asked]) =>
    [...asked.values()].map((of) => () => index<IndexName>(name, of, cache)),
  ),
];

/** The steps of one batch. */
function createRun(
  session: Session,
  { replay, loadOne, apply, positions, version }: BatchParts,
  { buffer, locks, cache }: { readonly buffer: WriteBuffer; readonly locks: Locks; readonly cache: RowCache },
) {
  const batch = createBatch(cache);
  const answers: Answers = new Map();
  const all: Write[] = [];

  async function load(missing: Missing): Promise<void> {
    let loads = loadsOf(missing, loadOne, cache);
    while (loads.length > 0) {
      const lacking: Lacking = new Map();
      loads = loads.filter((work) => replay.attempt({ answers, lacking }, work) === null);
      if (loads.length > 0) await fetchAnswers(session, lacking, answers);
    }
  }

  /** Writes into the buffer. What it must know first is fetched. */
  async function write(writes: readonly Write[]): Promise<void> {
    if (writes.length === 0) return;
    const missing = missingLocks(locks, writes, (id) => cache.row("agent", id));
    if (missing) throw new LocksMissing(missing);
    // The database makes the scopes of an organisation, to which later writes refer.
    const made = writes.findLastIndex(makesOrganisation) + 1;
    if (made > 0 && made < writes.length) {
      await fill(writes.slice(0, made));
      await flush();
    }
    await fill(made < writes.length ? writes.slice(made) : writes);
    all.push(...writes);
  }

  async function fill(writes: readonly Write[]): Promise<void> {
    for (;;) {
      const lacking: Lacking = new Map();
      const undo = positions.draft();
      if (replay.attempt({ answers, lacking, writes: buffer }, () => apply(writes))) break;
      for (const one of writes) lookAhead(one, lacking);
      undo();
      buffer.reset();
      await fetchAnswers(session, lacking, answers);
    }
  }

  /** Notes what a write must know, so that it is fetched together with what the first one lacked. */
  function lookAhead(write: Write, lacking: Lacking): void {
    try {
      replay.attempt({ answers, lacking, writes: buffer }, () => apply([write]));
    } catch {
      // It follows from a write before it. It is tried again after that one.
    }
  }

  /** Sends what was written, so that the next look-ups find it. */
  async function flush(): Promise<void> {
    await session.exchange(buffer.take());
    answers.clear();
  }

  return {
    written: () => all,
    async decideAll(commands: readonly AnyCommand[], time: BatchTime): Promise<readonly unknown[]> {
      for (
        let lacking = batch.lacking(commands, time);
        lacking;
        lacking = batch.lacking(lacking.commands, time)
      )
        await load(lacking.missing);
      const newer = refuseNewer(cache, version);
      if (newer) throw newer;
      const decided: unknown[] = [];
      for (const command of commands) decided.push(await decide(command, time));
      await write(batch.takeWrites());
      return decided;
    },
  };

  async function decide(command: AnyCommand, time: BatchTime): Promise<unknown> {
    for (;;) {
      const decided = batch.decide(command, time);
      if ("answer" in decided) return decided.answer;
      if (decided.writes.length > 0) {
        await write(decided.writes);
        await flush();
      }
      await load(decided.missing);
    }
  }
}
