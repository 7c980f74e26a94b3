import type { Context } from "../../src/services/context.ts";

/** As a restore leaves the ledger, and as its operator may have done since. */
export async function markRestored(
  ctx: Context,
  { restoredAt = ctx.now(), acknowledgedAt = null as number | null } = {},
): Promise<void> {
  await ctx.store.execute({
    scope: null,
    needs: {},
    decide: ({ instance }) => {
      const row = { ...instance, restoredAt, acknowledgedAt };
      return { answer: null, change: { put: [{ kind: "instance", before: instance, row }] } };
    },
  });
}
