import type { Context } from "../../src/services/context.ts";
import { ensureInstance } from "../../src/services/instance.ts";

/** As a restore leaves the ledger. */
export async function markRestored(ctx: Context): Promise<void> {
  const row = { ...(await ensureInstance(ctx)), restoredAt: ctx.now(), acknowledgedAt: null };
  await ctx.store.execute({
    scope: { organisationId: "", mode: "live" },
    needs: {},
    decide: () => ({ answer: null, change: { rows: [{ kind: "instance", row }] } }),
  });
}
