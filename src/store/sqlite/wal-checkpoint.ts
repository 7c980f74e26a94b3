import { Database } from "bun:sqlite";
import { ledgerFile } from "./ledger-file.ts";

/** A pass that copies fewer pages than these leaves few behind: what was written meanwhile is less still. */
const PAGES_FEW = 256;
/** While more is written than can be copied, another pass gains nothing. */
const PASSES_MAX = 5;

/**
 * Copies the write-ahead log into the ledger's file, for a process of its own: the writer's one would hold up every request for
 * as long as the disk takes (https://www.sqlite.org/wal.html). It waits for nobody (SQLite's PASSIVE), so while others write it
 * goes on until little is left. The writer starts its log anew once all of it is copied.
 *
 * @returns a call that copies, and answers how many pages the log had; it throws what SQLite throws, such as where the disk is full
 */
export function createWalCheckpoint(dataFolder: string): () => number {
  const raw = new Database(ledgerFile(dataFolder), { readwrite: true });
  const checkpoint = raw.query<{ checkpointed: number }, []>("PRAGMA wal_checkpoint(PASSIVE)");
  return () => {
    let copied = 0;
    for (let pass = 0; pass < PASSES_MAX; pass++) {
      // Minus one where the file is not in this mode.
      const pages = checkpoint.get()?.checkpointed ?? 0;
      const copiedNow = pages - copied;
      copied = pages;
      if (copiedNow < PAGES_FEW) break;
    }
    return copied;
  };
}
