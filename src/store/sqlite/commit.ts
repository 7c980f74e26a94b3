import { type Database, SQLiteError } from "bun:sqlite";
import type { Refusal } from "../../core/errors.ts";
import type { Command } from "../store.ts";
import type { Apply } from "./apply.ts";
import type { Load } from "./load.ts";

/** How many commands share one fsync at most. */
const BATCH_MAX = 256;
/** Another process's transaction is short. It is waited for without holding up the event loop, and not for ever. */
const BUSY_RETRY_MS = 10;
const BUSY_MS_MAX = 5_000;

/** An async decide would be applied after its transaction, or never: its type forbids it, and so does this. */
function refusePromise(decision: object): void {
  if ("then" in decision)
    throw new TypeError("a command decides at once: its decide may not return a promise");
}

const halvesOf = <Item>(items: readonly Item[]): readonly (readonly Item[])[] => {
  const middle = Math.ceil(items.length / 2);
  return [items.slice(0, middle), items.slice(middle)];
};

type Job = {
  readonly queuedAt: number;
  /** Loads, decides and applies; returns what to call when it is on disk. */
  readonly run: () => () => void;
  readonly fail: (error: unknown) => void;
};

/** Group commit: commands of concurrent requests share a transaction and its fsync. */
export type CommitQueue = {
  execute<Answer>(command: Command<Answer>): Promise<Answer | Refusal>;
  /** Work that decides nothing, in a transaction like the commands'. */
  run<Result>(work: () => Result): Promise<Result>;
  /** Commits what is queued; what comes later is refused. */
  close(): void;
};

/** What else must happen as transactions come and go. */
export type Transactions = {
  /** The ledger is locked, and nothing is read yet. */
  readonly onBegun: () => void;
  readonly onUndone: () => void;
  /** A batch of so many commands is on disk after so long, and none of it is answered yet. */
  readonly onCommitted: (commands: number, durationMs: number) => void;
};

export function createCommitQueue(
  database: Database,
  load: Load,
  apply: Apply,
  { onBegun, onUndone, onCommitted }: Transactions,
): CommitQueue {
  const begin = database.query("BEGIN IMMEDIATE");
  const commit = database.query("COMMIT");

  let queue: Job[] = [];
  let scheduled = false;
  let closed = false;

  /** Whether a transaction is open for the jobs. While another process holds the ledger they wait in the queue, up to a bound. */
  function begins(jobs: readonly Job[]): boolean {
    try {
      begin.run();
      return true;
    } catch (error) {
      if (database.inTransaction) database.run("ROLLBACK");
      const busy = error instanceof SQLiteError && error.code === "SQLITE_BUSY";
      const waiting = jobs.filter((job) => busy && performance.now() - job.queuedAt < BUSY_MS_MAX);
      for (const job of jobs) if (!waiting.includes(job)) job.fail(error);
      if (waiting.length > 0) {
        queue = [...waiting, ...queue];
        scheduled = true;
        setTimeout(flush, BUSY_RETRY_MS);
      }
      return false;
    }
  }

  /**
   * All of the jobs in one transaction, or none. A command that fails is a fault, and rare: a savepoint for each would copy
   * every page that it touches. So the batch is undone instead, and its halves run again, down to the job that fails by itself;
   * deciding is pure.
   */
  function commitTogether(jobs: readonly Job[]): void {
    if (!begins(jobs)) return;
    const begunAt = performance.now();
    let settlements: readonly (() => void)[];
    try {
      onBegun();
      settlements = jobs.map((job) => job.run());
      commit.run();
    } catch (error) {
      if (database.inTransaction) database.run("ROLLBACK");
      onUndone();
      if (jobs.length === 1) jobs[0]?.fail(error);
      else for (const half of halvesOf(jobs)) commitTogether(half);
      return;
    }
    onCommitted(jobs.length, performance.now() - begunAt);
    for (const settle of settlements) settle();
  }

  function flush(): void {
    scheduled = false;
    const batch = queue.slice(0, BATCH_MAX);
    queue = queue.slice(BATCH_MAX);
    if (queue.length > 0) schedule();
    if (batch.length > 0) commitTogether(batch);
  }

  function schedule(): void {
    if (scheduled) return;
    scheduled = true;
    // After the requests that have arrived meanwhile, so that they join the batch.
    setImmediate(flush);
  }

  /** Queues what gives an answer, which is resolved when it is on disk. */
  function enqueue<Answer>(work: () => Answer): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (closed) throw new Error("the store is closed");
      queue.push({
        queuedAt: performance.now(),
        run: () => {
          const answer = work();
          return () => resolve(answer);
        },
        fail: reject,
      });
      schedule();
    });
  }

  return {
    run: enqueue,
    execute: ({ scope, needs, decide }) =>
      enqueue(() => {
        const decision = decide(load(scope, needs));
        refusePromise(decision);
        const { answer, change } = decision;
        if (change) apply(scope, change);
        return answer;
      }),
    close() {
      closed = true;
      while (queue.length > 0) flush();
    },
  };
}
