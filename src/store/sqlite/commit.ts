import type { Database } from "bun:sqlite";
import type { Refusal } from "../../core/errors.ts";
import type { Command } from "../store.ts";
import type { Apply } from "./apply.ts";
import type { Load } from "./load.ts";

/** How many commands share one fsync at most. */
const BATCH_MAX = 256;

/** An async decide would be applied after its transaction, or never: its type forbids it, and so does this. */
function refusePromise(decision: object): void {
  if ("then" in decision)
    throw new TypeError("a command decides at once: its decide may not return a promise");
}

type Job = {
  /** Loads, decides and applies; returns what to call when the batch is on disk. */
  readonly run: () => () => void;
  readonly fail: (error: unknown) => void;
};

/** Group commit: commands of concurrent requests share a transaction, each in a savepoint of its own. */
export type CommitQueue = {
  execute<Answer>(command: Command<Answer>): Promise<Answer | Refusal>;
  /** Commits what is queued; what comes later is refused. */
  close(): void;
};

export function createCommitQueue(database: Database, load: Load, apply: Apply): CommitQueue {
  const begin = database.query("BEGIN IMMEDIATE");
  const commit = database.query("COMMIT");
  const savepoint = database.query("SAVEPOINT command");
  const release = database.query("RELEASE command");
  const rollbackTo = database.query("ROLLBACK TO command");

  let queue: Job[] = [];
  let scheduled = false;
  let closed = false;

  /** Runs one job in its savepoint: its own failure undoes it alone. */
  function runJob(job: Job): () => void {
    savepoint.run();
    try {
      const settle = job.run();
      release.run();
      return settle;
    } catch (error) {
      // Some faults, such as a full disk, end the whole transaction: then the batch fails as one.
      if (!database.inTransaction) throw error;
      rollbackTo.run();
      release.run();
      return () => job.fail(error);
    }
  }

  function commitBatch(batch: readonly Job[]): void {
    let settlements: readonly (() => void)[];
    try {
      begin.run();
      settlements = batch.map(runJob);
      commit.run();
    } catch (error) {
      if (database.inTransaction) database.run("ROLLBACK");
      for (const job of batch) job.fail(error);
      return;
    }
    for (const settle of settlements) settle();
  }

  function flush(): void {
    scheduled = false;
    const batch = queue.slice(0, BATCH_MAX);
    queue = queue.slice(BATCH_MAX);
    if (queue.length > 0) schedule();
    if (batch.length > 0) commitBatch(batch);
  }

  function schedule(): void {
    if (scheduled) return;
    scheduled = true;
    // After the requests that have arrived meanwhile, so that they join the batch.
    setImmediate(flush);
  }

  return {
    execute({ scope, needs, decide }) {
      return new Promise((resolve, reject) => {
        if (closed) throw new Error("the store is closed");
        queue.push({
          run: () => {
            const decision = decide(load(scope, needs));
            refusePromise(decision);
            const { answer, change } = decision;
            if (change) apply(scope, change);
            return () => resolve(answer);
          },
          fail: reject,
        });
        schedule();
      });
    },
    close() {
      closed = true;
      while (queue.length > 0) flush();
    },
  };
}
