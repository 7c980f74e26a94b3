import type { Config } from "../config.ts";
import { SECOND_MS } from "../core/time.ts";
import type { Job } from "../jobs/scheduler.ts";
import { createWalCheckpointChild } from "../platform/wal-checkpoint-child.ts";

export const WAL_CHECKPOINT_ARGUMENT = "wal-checkpoint-child";

/** A log of fewer pages than these, 4 MB, may grow on. */
const LOG_PAGES_LONG = 1_024;

/**
 * Keeps the ledger's write-ahead log short without holding up requests: a child copies nearly all of it, and the writer only
 * the rest, after which it starts the log anew. Without a child the writer copies all of it.
 *
 * @param command how this executable is started
 */
export function walCheckpointJob(
  { data }: Config,
  command: readonly string[],
  finishWalCheckpoint: () => void,
): { readonly job: Job; stop(): Promise<void> } {
  const child = createWalCheckpointChild([...command, WAL_CHECKPOINT_ARGUMENT, data]);
  async function run(): Promise<void> {
    let pages = LOG_PAGES_LONG;
    try {
      pages = await child.checkpoint();
    } finally {
      if (pages >= LOG_PAGES_LONG) finishWalCheckpoint();
    }
  }
  return { job: { name: "wal-checkpoint", everyMs: SECOND_MS / 4, run }, stop: child.stop };
}
