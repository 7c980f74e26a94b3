import { createIds } from "../../src/core/ids.ts";
import { random40 } from "../../src/platform/random.ts";
import type { Context } from "../../src/services/context.ts";
import { openSqliteStore } from "../../src/store/sqlite/store.ts";

/** The same service by another clock. The engine has a clock of its own: it gets a store of its own, to be closed. */
export function atTime(
  ctx: Context,
  dataFolder: string,
  now: () => number,
): { readonly ctx: Context; close(): Promise<void> } {
  const store = openSqliteStore(dataFolder, {
    now,
    newInstanceId: () => createIds(now, random40)("instance"),
  });
  return { ctx: { ...ctx, now, store }, close: store.close };
}
