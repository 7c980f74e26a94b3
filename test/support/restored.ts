import type { Context } from "../../src/services/context.ts";
import { ensureInstance } from "../../src/services/instance.ts";

/** As a restore leaves the ledger, and as its operator may have done since. */
export async function markRestored(
  ctx: Context,
  { restoredAt = ctx.now(), acknowledgedAt = null as number | null } = {},
): Promise<void> {
  const row = { ...(await ensureInstance(ctx)), restoredAt, acknowledgedAt };
  await ctx.store.execute({
    scope: { organisationId: "", mode: "live" },
    needs: {},
    decide: () => ({ answer: null, change: { rows: [{ kind: "instance", row }] } }),
  });
}
