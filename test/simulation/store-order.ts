import { AsyncLocalStorage } from "node:async_hooks";
import type { TestContext } from "../support/context.ts";

/** In which order commands that are started at once come to the store. */
export type StoreOrder = {
  /** Starts all of them in one turn. Resolves to their results, in the order in which each first gave the store a command. */
  inOrder<T>(begin: readonly (() => Promise<T>)[]): Promise<readonly T[]>;
};

/** A check keeps its capsule before its outcome is decided, and the outcomes of two checks may overtake each other meanwhile. */
const keepsCapsule = (command: { readonly needs?: object }): boolean =>
  command.needs !== undefined && ("newestCapsule" in command.needs || "capsule" in command.needs);

const NOT_YET = Number.MAX_SAFE_INTEGER;

/** Watches the commands of a context's store. A verb that reads first comes to the store later than one that does not. */
export function watchStoreOrder({ store }: TestContext): StoreOrder {
  const turns = new AsyncLocalStorage<{ place: number }>();
  let place = 0;
  const execute = store.execute.bind(store) as (command: object) => Promise<unknown>;
  store.execute = ((command: object) => {
    const turn = turns.getStore();
    if (turn?.place === NOT_YET && !keepsCapsule(command)) turn.place = place++;
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
      // Those that gave the store no command come last, in the order in which they were started.
      return results.toSorted((a, b) => a.turn.place - b.turn.place).map(({ result }) => result);
    },
  };
}
