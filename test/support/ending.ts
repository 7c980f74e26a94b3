import type { Context } from "../../src/services/context.ts";
import type { Store } from "../../src/store/store.ts";

/** The same service, as if its process ended after so many commits. */
export function endingAfter<Given extends Context>(ctx: Given, commits: number): Given {
  let count = 0;
  const execute = async (command: never): Promise<unknown> => {
    if (count >= commits) throw new Error("crashed");
    count += 1;
    return ctx.store.execute(command);
  };
  return { ...ctx, store: { ...ctx.store, execute: execute as Store["execute"] } };
}
