import type { Context } from "../../src/services/context.ts";
import type { Needs } from "../../src/store/needs.ts";
import type { Store } from "../../src/store/store.ts";

type Command = { readonly needs: Needs };

/** The same service, but its commands go through `pass`, which calls `go` to execute them. */
export function withCommands<Given extends Context>(
  ctx: Given,
  pass: (command: Command, go: () => Promise<unknown>) => Promise<unknown>,
): Given {
  const execute = (command: Command): Promise<unknown> =>
    pass(command, () => ctx.store.execute(command as never));
  return { ...ctx, store: { ...ctx.store, execute: execute as Store["execute"] } };
}

/** The same service, but its commands on these warrants throw. */
export const failingOn = (ctx: Context, warrantIds: ReadonlySet<string>): Context =>
  withCommands(ctx, async ({ needs: { warrant } }, go) => {
    if (typeof warrant === "string" && warrantIds.has(warrant)) throw new Error("broken");
    return go();
  });
