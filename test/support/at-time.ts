import type { Context } from "../../src/services/context.ts";
import { openTestStore } from "./store.ts";

/** The same service with another clock. The engine has its own clock, so this has its own store, which the test must close. */
export function atTime(
  ctx: Context,
  dataFolder: string,
  now: () => number,
): { readonly ctx: Context; close(): Promise<void> } {
  const store = openTestStore(dataFolder, { now });
  return { ctx: { ...ctx, now, store }, close: store.close };
}
