import { createIds } from "../../src/core/ids.ts";
import { random40 } from "../../src/platform/random.ts";
import { openSqliteStore, type SqliteStore } from "../../src/store/sqlite/store.ts";
import type { Store } from "../../src/store/store.ts";

/** A store as the tests use it, which is of either engine. */
export type TestStore = Store & Pick<SqliteStore, "newestIdTime">;

/** Opens the ledger of a folder. Nothing limits its space. */
export function openTestStore(
  folder: string,
  { now, steadyNow = now }: { readonly now: () => number; readonly steadyNow?: () => number },
): TestStore {
  const newInstanceId = () => createIds(now, random40)("instance");
  const options = { version: "0.1.0", now, steadyNow, newInstanceId };
  return openSqliteStore(folder, { ...options, freeBytes: () => null });
}
