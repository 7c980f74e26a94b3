import { AsyncLocalStorage } from "node:async_hooks";
import type { TestContext } from "../support/context.ts";

/** In which order commands that are started at once come to the store. */
export type StoreOrder = {
  /** Starts all of them in one turn. Resolves to their results, in the order in which each first gave the store a command. */
  inOrder<T>(begin: readonly (() => Promise<T>)[]): Promise<readonly T[]>;
  /** Begins a command that may end in a later turn: what it does after `follow` counts for the command that calls `follow`. */
  lasting<T>(begin: () => T): { readonly result: T; readonly follow: () => void };
};

/** A check keeps its capsule before its outcome is decided, and the outcomes of two checks may overtake each other meanwhile. */
const keepsCapsule = (command: { readonly needs?: object }): boolean =>
  command.needs !== undefined && ("newestCapsule" in command.needs || "capsule" in command.needs);

const NOT_YET = Number.MAX_SAFE_INTEGER;
/** When a command of `inOrder` came to the store. */
type Turn = { place: number };

/** Watches the commands of a context's store. A verb that reads first comes to the store later than one that does not. */
export function watchStoreOrder({ store }: TestContext): StoreOrder {
  const doing = new AsyncLocalStorage<{ turn: Turn | undefined }>();
  let place = 0;
  const execute = store.execute.bind(store) as (command: object) => Promise<unknown>;
  store.execute = ((command: object) => {
    const turn = doing.getStore()?.turn;
    if (turn?.place === NOT_YET && !keepsCapsule(command)) turn.place = place++;
    return execute(command);
  }) as typeof store.execute;
  return {
    async inOrder(begin) {
      const begun = begin.map((one) => {
        const turn = { place: NOT_YET };
        return { turn, result: doing.run({ turn }, one) };
      });
      const results = await Promise.all(
        begun.map(async ({ turn, result }) => ({ turn, result: await result })),
      );
      // Those that gave the store no command come last, in the order in which they were started.
      return results.toSorted((a, b) => a.turn.place - b.turn.place).map(({ result }) => result);
    },
    lasting(begin) {
      const own = { turn: doing.getStore()?.turn };
      const follow = () => {
        own.turn = doing.getStore()?.turn;
      };
      return { result: doing.run(own, begin), follow };
    },
  };
}
