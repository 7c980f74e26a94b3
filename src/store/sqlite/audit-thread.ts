import { statSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { auditFolder } from "./audit.ts";
import type { ThreadInput, ThreadMessage } from "./audit-threads.ts";
import { ledgerFile } from "./ledger-file.ts";
import { LOG_BYTES_KEPT } from "./open.ts";

/** The whole program of a thread that audits one share of a ledger: see `audit-threads.ts`. */

/**
 * While the write-ahead log is long, all threads rest for the first part of each period, by the clock that they share. SQLite begins
 * the log anew only in a moment at which nobody has a snapshot, and two threads that never rest leave hardly any.
 */
const PERIOD_MS = 2_400;
const REST_MS = 600;

const { dataFolder, ...options } = workerData as ThreadInput;
const log = `${ledgerFile(dataFolder)}-wal`;
const send = (message: ThreadMessage): void => parentPort?.postMessage(message);

/** Between two slices, when this thread has no snapshot. */
function onProgress(done: number, total: number): void {
  send({ done, total });
  const at = (performance.timeOrigin + performance.now()) % PERIOD_MS;
  if (at >= REST_MS) return;
  const bytes = statSync(log, { throwIfNoEntry: false })?.size ?? 0;
  if (bytes > LOG_BYTES_KEPT) Bun.sleepSync(REST_MS - at);
}

send({ found: auditFolder(dataFolder, { ...options, onProgress }) });
