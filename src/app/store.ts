import packageJson from "../../package.json" with { type: "json" };
import { createIds } from "../core/ids.ts";
import { withReserve } from "../platform/descriptors.ts";
import { freeBytesOf } from "../platform/disk.ts";
import { random40 } from "../platform/random.ts";
import { steadyNow } from "../platform/steady-clock.ts";
import { openSqliteStore, type SqliteStore, type SqliteStoreOptions } from "../store/sqlite/store.ts";

/** Opens the ledger of a data folder, by the machine's clock. Throws where it cannot be opened. */
export const openStore = (
  dataFolder: string,
  options: Pick<SqliteStoreOptions, "onCommitted" | "onPending"> = {},
): SqliteStore =>
  openSqliteStore(dataFolder, {
    ...options,
    version: packageJson.version,
    now: Date.now,
    steadyNow,
    opening: (open) => withReserve("this thread", open),
    freeBytes: () => freeBytesOf(dataFolder),
    newInstanceId: () => createIds(Date.now, random40)("instance"),
  });
