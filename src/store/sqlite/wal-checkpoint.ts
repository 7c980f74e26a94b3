import { Database } from "bun:sqlite";
import { ledgerFile } from "./ledger-file.ts";

/** After a pass with fewer pages than this, little is left: even less was written during the pass. */
const PAGES_FEW = 256;
/** The most passes of a run. Where others write faster than the log is copied, more passes do not help. */
const PASSES_MAX = 5;

/**
 * Copies the write-ahead log into the ledger's file, from a process of its own. In the server it would delay
 * every request while the disk writes (https://www.sqlite.org/wal.html). It is PASSIVE: it waits for no
 * reader or writer. It repeats until little is left, since others write meanwhile. Once everything is copied,
 * the writer starts the log from its beginning.
 *
 * @returns a call that copies and answers how many pages it copied. It throws SQLite's errors, such as for a
 *   full disk
 */
export function createWalCheckpoint(dataFolder: string): () => number {
  const raw = new Database(ledgerFile(dataFolder), { readwrite: true });
  const checkpoint = raw.query<{ checkpointed: number }, []>("PRAGMA wal_checkpoint(PASSIVE)");
  return () => {
    let copied = 0;
    for (let pass = 0; pass < PASSES_MAX; pass++) {
      // SQLite answers -1 where the file has no write-ahead log.
      const pages = checkpoint.get()?.checkpointed ?? 0;
      const copiedNow = pages - copied;
      copied = pages;
      if (copiedNow < PAGES_FEW) break;
    }
    return copied;
  };
}
