import { type Database, SQLiteError } from "bun:sqlite";
import { type AnyCommand, type BatchTime, createBatch } from "../batch.ts";
import type { RowCache } from "../row-cache.ts";
import type { Apply } from "../sql/apply.ts";
import type { Load } from "../sql/load.ts";

/** How many commands share one transaction and its fsync. */
const BATCH_MAX = 256;
/** How long a command waits at most for others to join its transaction. */
const GATHER_MS_MAX = 4;
/** So many commands in one transaction mean that more will come soon. */
const BUSY_COMMANDS = 8;
/** How long work that is in no hurry waits at most for commands to share their transaction. */
const BESIDE_MS_MAX = 100;
/**
 * How often and how long to wait for another process's transaction, which is short. The event loop continues
 * meanwhile.
 */
const BUSY_RETRY_MS = 10;
const BUSY_MS_MAX = 5_000;

const halvesOf = <Item>(items: readonly Item[]): readonly (readonly Item[])[] => {
  const middle = Math.ceil(items.length / 2);
  return [items.slice(0, middle), items.slice(middle)];
};

type Job = {
  readonly queuedAt: number;
  readonly resolve: (answer: never) => void;
  readonly fail: (error: unknown) => void;
} & ({ readonly command: AnyCommand } | { readonly work: () => unknown });

/** Group commit: commands of concurrent requests share a transaction and its fsync. */
export type CommitQueue = {
  execute(command: AnyCommand): Promise<unknown>;
  /** Runs other work in a transaction, in the queue with the commands. */
  run<Result>(work: () => Result): Promise<Result>;
  /**
   * The same for work that is in no hurry. While many commands are committed it joins those that come next, at most 100 ms later,
   * since a transaction of its own would have every command wait for another fsync. One at a time joins.
   */
  runBeside<Result>(work: () => Result): Promise<Result>;
  /** Commits the queued jobs. Later ones are refused. */
  close(): void;
};

/** What the queue works with. */
export type CommitParts = {
  readonly database: Database;
  readonly cache: RowCache;
  readonly load: Load;
  readonly apply: Apply;
  /** Called when a transaction has begun, with the ledger locked. Gives the times for its decisions. */
  readonly begun: () => BatchTime;
  /** Called when a transaction was undone. Everything that was read or written in it must be forgotten. */
  readonly undone: () => void;
  /** Called when a batch is on disk, before its commands are answered. */
  readonly committed: (time: BatchTime, commands: number, durationMs: number) => void;
};

/** Another process has locked the ledger. The code may say why: `SQLITE_BUSY_RECOVERY`. */
const isBusy = (error: unknown): boolean =>
  error instanceof SQLiteError && (error.code?.startsWith("SQLITE_BUSY") ?? false);

/**
 * Loads what the commands of a batch need, together, and then decides the jobs one after the other, each with the changes of
 * those before it. Only what these changed is loaded again. All changes are written, and not yet committed.
 */
function decideAll(
  jobs: readonly Job[],
  { cache, load, apply }: CommitParts,
  time: BatchTime,
): readonly unknown[] {
  const batch = createBatch(cache);
  const commands = jobs.flatMap((job) => ("command" in job ? [job.command] : []));
  for (let lacking = batch.lacking(commands, time); lacking; lacking = batch.lacking(lacking.commands, time))
    load(lacking.missing, cache);
  const answers = jobs.map((job) => {
    if ("work" in job) {
      apply(batch.takeWrites());
      return job.work();
    }
    for (;;) {
      const decided = batch.decide(job.command, time);
      if ("answer" in decided) return decided.answer;
      apply(decided.writes);
      load(decided.missing, cache);
    }
  });
  apply(batch.takeWrites());
  return answers;
}

/** Jobs that are in no hurry, and when they are due. */
function createBeside(flushSoon: () => void) {
  const jobs: Job[] = [];
  let busyAt = Number.NEGATIVE_INFINITY;
  let timer: Timer | null = null;

  /** Gives commands a little time to come, where they do. */
  function schedule(): void {
    if (timer) clearTimeout(timer);
    timer = null;
    if (jobs.length === 0) return;
    if (performance.now() - busyAt < BESIDE_MS_MAX) timer = setTimeout(flushSoon, BESIDE_MS_MAX);
    else flushSoon();
  }

  return {
    schedule,
    isEmpty: () => jobs.length === 0,
    add(job: Job): void {
      jobs.push(job);
      schedule();
    },
    /** The one that joins the next transaction. */
    take: () => jobs.splice(0, 1),
    committed(count: number): void {
      if (count >= BUSY_COMMANDS) busyAt = performance.now();
    },
  };
}

/** Makes a job, whose answer comes when it is on disk. */
function jobFor<Answer>(
  what: { readonly command: AnyCommand } | { readonly work: () => Answer },
  isClosed: boolean,
  add: (job: Job) => void,
): Promise<Answer> {
  return new Promise((resolve, fail) => {
    if (isClosed) throw new Error("the store is closed");
    add({ ...what, queuedAt: performance.now(), resolve, fail });
  });
}

export function createCommitQueue(parts: CommitParts): CommitQueue {
  const { database, cache } = parts;
  const begin = database.query("BEGIN IMMEDIATE");
  const commit = database.query("COMMIT");

  let queue: Job[] = [];
  const beside = createBeside(schedule);
  let scheduled = false;
  let closed = false;

  /**
   * Begins a transaction, and answers whether it did. While another process has the ledger locked, the jobs
   * go back into the queue, for a limited time.
   */
  function begins(jobs: readonly Job[]): boolean {
    try {
      begin.run();
      return true;
    } catch (error) {
      if (database.inTransaction) database.run("ROLLBACK");
      const waiting = jobs.filter((job) => isBusy(error) && performance.now() - job.queuedAt < BUSY_MS_MAX);
      for (const job of jobs) if (!waiting.includes(job)) job.fail(error);
      queue = [...waiting, ...queue];
      // One of two halves may have set the timer already.
      if (waiting.length > 0 && !scheduled) {
        scheduled = true;
        setTimeout(flush, BUSY_RETRY_MS);
      }
      return false;
    }
  }

  /**
   * Commits all jobs in one transaction, or none. A command that throws is a fault, and rare. The batch is
   * then undone, and its halves run again, until the faulty job fails alone; deciding is pure, so it can be
   * repeated. A savepoint for each job would copy every page that the job writes.
   */
  function commitTogether(jobs: readonly Job[]): void {
    if (!begins(jobs)) return;
    const begunAt = performance.now();
    let answers: readonly unknown[];
    let time: BatchTime;
    try {
      time = parts.begun();
      answers = decideAll(jobs, parts, time);
      commit.run();
    } catch (error) {
      if (database.inTransaction) database.run("ROLLBACK");
      parts.undone();
      if (jobs.length === 1) jobs[0]?.fail(error);
      else for (const half of halvesOf(jobs)) commitTogether(half);
      return;
    }
    cache.endBatch();
    beside.committed(jobs.length);
    parts.committed(time, jobs.length, performance.now() - begunAt);
    for (const [index, job] of jobs.entries()) job.resolve(answers[index] as never);
  }

  function flush(): void {
    scheduled = false;
    const batch = [...queue.slice(0, BATCH_MAX), ...beside.take()];
    queue = queue.slice(BATCH_MAX);
    if (batch.length > 0) commitTogether(batch);
    // Where another process has the ledger locked, the next try is on the timer already.
    if (queue.length > 0) schedule();
    beside.schedule();
  }

  /**
   * Commits as soon as a turn of the event loop brings no more commands: those that have arrived meanwhile join the batch. A busy
   * server may bring one in every turn, so the first of them waits for a limited time.
   */
  function gather(queuedBefore: number): void {
    const waited = performance.now() - (queue[0]?.queuedAt ?? 0);
    const isGrowing = queue.length > queuedBefore && queue.length < BATCH_MAX;
    if (isGrowing && waited < GATHER_MS_MAX) setImmediate(gather, queue.length);
    else flush();
  }

  /** `scheduled` is true from here until the flush that follows, by the next turns or by the timer. */
  function schedule(): void {
    if (scheduled) return;
    scheduled = true;
    setImmediate(gather, queue.length);
  }

  function enqueue(job: Job): void {
    queue.push(job);
    schedule();
  }

  return {
    run: (work) => jobFor({ work }, closed, enqueue),
    runBeside: (work) => jobFor({ work }, closed, beside.add),
    execute: (command) => jobFor<unknown>({ command }, closed, enqueue),
    close() {
      closed = true;
      while (queue.length > 0 || !beside.isEmpty()) flush();
    },
  };
}
