import type { Store } from "../store.ts";
import { createApply } from "./apply.ts";
import { auditLedger } from "./audit.ts";
import { createCommitQueue } from "./commit.ts";
import { createForget } from "./forget.ts";
import { createKnownRows } from "./known-rows.ts";
import { createLoad } from "./load.ts";
import { openLedger } from "./open.ts";
import { createDirectoryReader } from "./readers/directory.ts";
import { newestIdTime } from "./readers/newest-id.ts";
import { createPeopleReader } from "./readers/people.ts";
import { createPurchasesReader } from "./readers/purchases.ts";
import {
  createChecksReader,
  createEscalationsReader,
  createTraceReader,
  createWarrantsReader,
} from "./readers/warrants.ts";
import { createDeliveriesReader, createWebhooksReader } from "./readers/webhooks.ts";
import { createReadSnapshot, readingFrom } from "./snapshot.ts";

/** What the engine tells whoever measures it. */
export type StoreHooks = {
  /** Commands that shared a transaction are on disk. */
  readonly onCommitted?: (commands: number, durationMs: number) => void;
};

export interface SqliteStore extends Store {
  /** Copies the little of the write-ahead log that another process has left (`wal-checkpoint.ts`). */
  finishWalCheckpoint(): void;
}

/** The embedded engine: one SQLite file in the data folder, one writer, readers on a connection of their own. */
export function openSqliteStore(dataFolder: string, hooks: StoreHooks = {}): SqliteStore {
  const { writer, readers } = openLedger(dataFolder);
  const snapshot = createReadSnapshot(readers.raw);
  const known = createKnownRows(writer.raw);
  const commits = createCommitQueue(
    writer.raw,
    createLoad(writer.tables, known),
    createApply(writer, known),
    {
      onBegun: known.begin,
      onUndone: known.forgetAll,
      onCommitted(commands, durationMs) {
        snapshot.end();
        hooks.onCommitted?.(commands, durationMs);
      },
    },
  );
  const forget = createForget(writer.raw);
  // Of the pragmas it is the one that nobody reads, and writing it writes a page.
  const probe = () => {
    const [row] = writer.raw.query<{ user_version: bigint }, []>("PRAGMA user_version").all();
    writer.raw.run(`PRAGMA user_version = ${row?.user_version === 1n ? 2 : 1}`);
  };
  return {
    execute: commits.execute,
    forget: (retention, rowsMax) => commits.run(() => forget(retention, rowsMax)),
    probe: () => commits.run(probe),
    reader: {
      ...readingFrom(snapshot, {
        warrants: createWarrantsReader(readers.tables),
        trace: createTraceReader(readers.tables),
        checks: createChecksReader(readers.tables),
        escalations: createEscalationsReader(readers.tables),
        ...createDirectoryReader(readers.tables),
        webhooks: createWebhooksReader(readers.tables),
        deliveries: createDeliveriesReader(readers.tables),
        ...createPurchasesReader(readers.tables),
        ...createPeopleReader(readers.tables),
      }),
      refresh: snapshot.refresh,
      newestIdTime: () => newestIdTime(readers.tables),
      audit() {
        snapshot.end();
        return auditLedger(readers);
      },
    },
    finishWalCheckpoint() {
      // A reader keeps the log from being copied past where it reads.
      snapshot.end();
      writer.raw.run("PRAGMA wal_checkpoint(PASSIVE)");
    },
    async close() {
      commits.close();
      snapshot.end();
      readers.raw.close();
      writer.raw.close();
    },
  };
}
