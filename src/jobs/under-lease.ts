import type { Context } from "../services/context.ts";

/** A run whose instance has lost the lease of its job. It ends, and the run of another instance goes on. */
export class LeaseLost extends Error {}

/**
 * The context of a job, whose reads and writes fail once its lease is lost: so a run ends before its next step. One step may still
 * be made, where the lease ends while it is under way, or where the process was stopped in the middle of it. Two instances may then
 * do the same, which is harmless: every command decides on the rows, and a unique row (the nonce of a wallet, the number of a
 * checkpoint) refuses the second.
 */
export function underLease(ctx: Context, isHeld: () => boolean): Context {
  const { store } = ctx;
  const whileHeld = <Args extends unknown[], Result>(act: (...args: Args) => Promise<Result>) =>
    (async (...args) => {
      if (!isHeld()) throw new LeaseLost("another instance does this job now");
      return act(...args);
    }) satisfies typeof act;
  return {
    ...ctx,
    store: {
      ...store,
      read: whileHeld(store.read) as typeof store.read,
      execute: whileHeld(store.execute) as typeof store.execute,
      forget: whileHeld(store.forget),
      extendLog: whileHeld(store.extendLog),
      keepCheckpoint: whileHeld(store.keepCheckpoint),
      keepStatement: whileHeld(store.keepStatement),
    },
  };
}
