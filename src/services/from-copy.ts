import type { Context } from "./context.ts";

/**
 * For a long piece of work that only reads: all of it may come from a copy of the ledger, which has everything that was committed
 * before its first read.
 */
export function fromCopy(ctx: Context): Context {
  const work = {};
  return { ...ctx, store: { ...ctx.store, read: (use) => ctx.store.read(use, { work }) } };
}
