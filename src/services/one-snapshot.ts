import type { Reader } from "../store/reader.ts";
import type { Store } from "../store/store.ts";
import type { Context } from "./context.ts";

/**
 * Runs work whose reads all come from one snapshot. No snapshot waits for a commit, so it is let go before a command, such as
 * the renewal of a sign-in. It is let go too where a copy serves a piece of work, which may see more than the snapshot does: nothing that is
 * read later may see less again. Reads after that are those of the store.
 */
export async function fromOneSnapshot<Result>(
  ctx: Context,
  work: (reading: Context) => Promise<Result>,
): Promise<Result> {
  const { read, execute } = ctx.store;
  const begun = Promise.withResolvers<Reader>();
  const letGo = Promise.withResolvers<void>();
  read((reader) => {
    begun.resolve(reader);
    return letGo.promise;
  }).catch(begun.reject);
  const reader = await begun.promise;
  let isHeld = true;
  const end = () => {
    isHeld = false;
    letGo.resolve();
  };
  const store: Store = {
    ...ctx.store,
    async read(use, from) {
      if (!isHeld) return read(use, from);
      if (from === undefined) return use(reader);
      if ("afterAll" in from) {
        end();
        return read(use, from);
      }
      const usedIn: typeof use = (its, isCopy) => {
        if (isCopy && "work" in from) end();
        return use(its, isCopy);
      };
      return read(usedIn, { ...from, otherwise: () => (isHeld ? reader : null) });
    },
    execute(command: never) {
      end();
      return execute(command) as never;
    },
  };
  try {
    return await work({ ...ctx, store });
  } finally {
    end();
  }
}
