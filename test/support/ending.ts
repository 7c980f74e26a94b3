import type { Context } from "../../src/services/context.ts";

/** The same service, whose process ends after so many commits. */
export function endingAfter(ctx: Context, commits: number): Context {
  let count = 0;
  return {
    ...ctx,
    store: {
      ...ctx.store,
      reader: ctx.store.reader,
      execute: async (command) => {
        if (count >= commits) throw new Error("crashed");
        count += 1;
        return ctx.store.execute(command);
      },
    },
  };
}
