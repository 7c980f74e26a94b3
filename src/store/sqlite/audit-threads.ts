import { statSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { type AuditOptions, auditFolder, SHARES, type Share } from "./audit.ts";
import { ledgerFile } from "./ledger-file.ts";

/** What a thread gets, and what it sends: how many rows it has read of all that there are, and at the end what it found. */
export type ThreadInput = {
  readonly dataFolder: string;
  readonly share: Share;
  readonly fileBytesMax: number;
};
export type ThreadMessage =
  | { readonly done: number; readonly total: number }
  | { readonly found: readonly string[] };

/** In the executable the thread is an entry point of the build, under its path below src. */
const THREAD = import.meta.dir.startsWith("/$bunfs/")
  ? "/$bunfs/root/store/sqlite/audit-thread.ts"
  : join(import.meta.dir, "audit-thread.ts");

/** The audit of a ledger this long takes some seconds, beside which the start of two threads does not matter. */
const THREADS_FROM_BYTES = 64 * 1_024 * 1_024;

type Options = Omit<AuditOptions, "share">;

/** Audits the ledger in a data folder: a short one in this thread, a long one in two threads. */
export const auditQuickly = async (dataFolder: string, options: Options): Promise<readonly string[]> =>
  statSync(ledgerFile(dataFolder)).size < THREADS_FROM_BYTES
    ? auditFolder(dataFolder, options)
    : auditInThreads(dataFolder, options);

/**
 * Audits the ledger in a data folder as `auditFolder` does, each share in a thread of its own. On two processors a long ledger
 * takes about half the time.
 *
 * @throws where a thread ends before it has said what it found
 */
export async function auditInThreads(
  dataFolder: string,
  { fileBytesMax = Number.POSITIVE_INFINITY, onProgress }: Options,
): Promise<readonly string[]> {
  const done = new Map<Share, number>();
  const threads = SHARES.map((share) => {
    const input: ThreadInput = { dataFolder, share, fileBytesMax };
    const worker = new Worker(THREAD, { workerData: input });
    return { share, worker };
  });
  try {
    const found = threads.map(({ share, worker }) =>
      foundBy(worker, (rows, total) => {
        done.set(share, rows);
        const all = done.values().reduce((sum, some) => sum + some, 0);
        onProgress?.(Math.min(all, total), total);
      }),
    );
    return (await Promise.all(found)).flat();
  } finally {
    for (const { worker } of threads) void worker.terminate();
  }
}

async function foundBy(
  worker: Worker,
  onProgress: (done: number, total: number) => void,
): Promise<readonly string[]> {
  const { promise, resolve, reject } = Promise.withResolvers<readonly string[]>();
  worker.on("message", (message: ThreadMessage) => {
    if ("found" in message) resolve(message.found);
    else onProgress(message.done, message.total);
  });
  worker.once("error", reject);
  worker.once("exit", () => reject(new Error("a thread of the audit has ended before it was done")));
  return promise;
}
