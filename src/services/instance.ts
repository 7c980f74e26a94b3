import type { Instance } from "../core/directory.ts";
import { isRefusal } from "../core/errors.ts";
import type { Context } from "./context.ts";

/** This installation. It is made with the ledger's first use. */
export async function ensureInstance(ctx: Pick<Context, "store" | "newId" | "now">): Promise<Instance> {
  const known = ctx.store.reader.instance.get();
  if (known) return known;
  const row: Instance = {
    id: ctx.newId("instance"),
    createdAt: ctx.now(),
    restoredAt: null,
    acknowledgedAt: null,
  };
  const instance = await ctx.store.execute<Instance>({
    // It belongs to nobody: any scope will do.
    scope: { organisationId: "", mode: "live" },
    needs: { instance: true },
    decide: (snapshot) =>
      snapshot.instance
        ? { answer: snapshot.instance }
        : { answer: row, change: { rows: [{ kind: "instance", row }] } },
  });
  if (isRefusal(instance)) throw new Error(instance.message);
  return instance;
}
