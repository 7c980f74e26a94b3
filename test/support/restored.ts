import type { Context } from "../../src/services/context.ts";

/** The ledger after a restore, and where `acknowledgedAt` is given, after its operator has acknowledged it. */
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
