import { createIds } from "../../src/core/ids.ts";
import { random40 } from "../../src/platform/random.ts";
import type { Context } from "../../src/services/context.ts";
import { openSqliteStore } from "../../src/store/sqlite/store.ts";

/** The same service with another clock. The engine has its own clock, so this has its own store, which the test must close. */
export function atTime(
  ctx: Context,
  dataFolder: string,
  now: () => number,
): { readonly ctx: Context; close(): Promise<void> } {
  const store = openSqliteStore(dataFolder, {
    freeBytes: () => null,
    version: "0.1.0",
    now,
    steadyNow: now,
    newInstanceId: () => createIds(now, random40)("instance"),
  });
  return { ctx: { ...ctx, now, store }, close: store.close };
}
