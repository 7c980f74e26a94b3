import type { Config } from "../config.ts";
import { SECOND_MS } from "../core/time.ts";
import type { Job, OwnJob } from "../jobs/scheduler.ts";
import { createWalCheckpointChild } from "../platform/wal-checkpoint-child.ts";
import { WAL_CHECKPOINT_ARGUMENT } from "./children.ts";

/** A shorter log, below 4 MB, may grow. */
const LOG_PAGES_LONG = 1_024;

/**
 * Keeps the ledger's write-ahead log short without holding up requests. A child copies nearly all of the log into the ledger's
 * file. The writer copies the rest and starts the log anew. Where the child fails, the writer copies all of it.
 *
 * @param command how this executable is started
 */
export function walCheckpointJob(
  { data }: Config,
  command: readonly string[],
  finishWalCheckpoint: () => void,
): { readonly job: Extract<Job, OwnJob>; stop(): Promise<void> } {
  const child = createWalCheckpointChild([...command, WAL_CHECKPOINT_ARGUMENT, data]);
  async function run(): Promise<void> {
    let pages = LOG_PAGES_LONG;
    try {
      pages = await child.checkpoint();
    } finally {
      if (pages >= LOG_PAGES_LONG) finishWalCheckpoint();
    }
  }
  return { job: { name: "wal-checkpoint", doneBy: "each", everyMs: SECOND_MS / 4, run }, stop: child.stop };
}
