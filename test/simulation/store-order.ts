import { AsyncLocalStorage } from "node:async_hooks";
import type { TestContext } from "../support/context.ts";

/** Tells in which order what is begun at once comes to the store. */
export type StoreOrder = {
  /** Begins all of it in one turn. Resolves to the results in the order in which each first gave the store a command. */
  inOrder<T>(begin: readonly (() => Promise<T>)[]): Promise<readonly T[]>;
};

const NOT_YET = Number.MAX_SAFE_INTEGER;

/** Watches the commands of a context's store: a verb that reads before its command comes later than one that does not. */
export function watchStoreOrder({ store }: TestContext): StoreOrder {
  const turns = new AsyncLocalStorage<{ place: number }>();
  let place = 0;
  const execute = store.execute.bind(store) as (command: unknown) => Promise<unknown>;
  store.execute = ((command: unknown) => {
    const turn = turns.getStore();
    if (turn?.place === NOT_YET) turn.place = place++;
    return execute(command);
  }) as typeof store.execute;
  return {
    async inOrder(begin) {
      const begun = begin.map((one) => {
        const turn = { place: NOT_YET };
        return { turn, result: turns.run(turn, one) };
      });
      const results = await Promise.all(
        begun.map(async ({ turn, result }) => ({ turn, result: await result })),
      );
      // What gave the store nothing of its own is last, as it was begun.
      return results.toSorted((a, b) => a.turn.place - b.turn.place).map(({ result }) => result);
    },
  };
}
