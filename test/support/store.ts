import { createIds } from "../../src/core/ids.ts";
import { random40 } from "../../src/platform/random.ts";
import { parsePostgresAddress } from "../../src/store/postgres/address.ts";
import {
  openPostgresStore,
  type PostgresStore,
  type PostgresStoreOptions,
} from "../../src/store/postgres/store.ts";
import { newestIdTime } from "../../src/store/sql/newest-id.ts";
import { openSqliteStore, type SqliteStore } from "../../src/store/sqlite/store.ts";
import type { Store } from "../../src/store/store.ts";
import { ENGINE } from "./engine.ts";
import { databaseOf } from "./new-ledger.ts";
import { openSyncSql } from "./sync-sql.ts";
import { copiesIn } from "./temporary.ts";

/** A store as the tests use it, which is of either engine. */
export type TestStore = Store & Pick<SqliteStore, "newestIdTime">;

/** Opens the ledger of a folder. Nothing limits its space. */
export function openTestStore(
  folder: string,
  { now, steadyNow = now }: { readonly now: () => number; readonly steadyNow?: () => number },
): TestStore {
  const newInstanceId = () => createIds(now, random40)("instance");
  const options = { version: "0.1.0", now, steadyNow, newInstanceId };
  const store =
    ENGINE === "postgres"
      ? openLazily(databaseOf(folder), { ...options, auditCopies: copiesIn(folder) })
      : openSqliteStore(folder, { ...options, freeBytes: () => null });
  const execute = (command: never) =>
    gathering === null ? store.execute(command) : gathering.then(() => store.execute(command));
  return {
    ...store,
    execute: (command: never) => {
      asked.resolve();
      return execute(command);
    },
  };
}

let gathering: Promise<void> | null = null;
let asked = Promise.withResolvers<void>();

/** Holds the commands of all stores until `release`. They then go on together, in the order in which they came. */
export function gatherCommands(): { next(): Promise<void>; release(): void } {
  const released = Promise.withResolvers<void>();
  gathering = released.promise;
  return {
    /** Resolves when the next command has come. */
    next() {
      asked = Promise.withResolvers();
      return asked.promise;
    },
    release() {
      gathering = null;
      released.resolve();
    },
  };
}

/**
 * A store on PostgreSQL that is there at once, as the embedded one is: what is asked of it waits until it is open. Until then it
 * knows of no record.
 */
function openLazily(url: string, options: PostgresStoreOptions): TestStore {
  const { raw, close: closeSync } = openSyncSql(url);
  raw
    .prepare(
      "INSERT INTO instances (id, chain_ids, version, oldest_writer, created_at, rowid) SELECT ?1, '[]', ?2, ?2, ?3, 1 WHERE NOT EXISTS (SELECT 1 FROM instances)",
    )
    .run(options.newInstanceId(), options.version, options.now());
  const newest = newestIdTime(raw);
  closeSync();

  let opened: PostgresStore | null = null;
  const opening = openPostgresStore(addressOf(url), options).then((store) => {
    opened = store;
    return store;
  });
  const whenOpen =
    <Name extends keyof Store>(name: Name) =>
    async (...given: unknown[]) =>
      ((await opening)[name] as (...given: unknown[]) => unknown)(...given);
  return {
    execute: whenOpen("execute") as Store["execute"],
    read: whenOpen("read") as Store["read"],
    apiKey: (hash) => opened?.apiKey(hash) ?? opening.then((store) => store.apiKey(hash)),
    lastRecordedAt: () => opened?.lastRecordedAt() ?? -1,
    watch(onWritten) {
      const ended = Promise.withResolvers<void>();
      void opening.then((store) => ended.promise.then(store.watch(onWritten)));
      return ended.resolve;
    },
    newsOfOthers: () => (opened ? opened.newsOfOthers() : []),
    audit: whenOpen("audit") as Store["audit"],
    forget: whenOpen("forget") as Store["forget"],
    extendLog: whenOpen("extendLog") as Store["extendLog"],
    keepCheckpoint: whenOpen("keepCheckpoint") as Store["keepCheckpoint"],
    keepStatement: whenOpen("keepStatement") as Store["keepStatement"],
    probe: whenOpen("probe") as Store["probe"],
    hasSpace: () => true,
    hasSpaceForCapsule: () => true,
    close: whenOpen("close") as Store["close"],
    newestIdTime: newest,
  };
}

function addressOf(url: string) {
  const address = parsePostgresAddress(url);
  if ("problem" in address) throw new Error(address.problem);
  return address;
}
