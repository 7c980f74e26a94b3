import { type TreasuryWatch, watchKey } from "../../core/treasury-watch.ts";
import type { Context } from "../context.ts";

/** Whether nobody has moved the watch since it was read. */
export const isAsSeen = (now: TreasuryWatch, seen: TreasuryWatch): boolean =>
  watchKey(now) === watchKey(seen) &&
  now.last.hash === seen.last.hash &&
  now.reconciled.hash === seen.reconciled.hash &&
  now.stopped === seen.stopped;

/** Writes what became of a watch, unless it has moved since it was read. Answers whether it did. */
export async function moveWatch(ctx: Context, seen: TreasuryWatch, row: TreasuryWatch): Promise<boolean> {
  const moved = await ctx.store.execute({
    scope: null,
    needs: { treasuryWatch: seen },
    decide: ({ treasuryWatch: before }) =>
      before === null || !isAsSeen(before, seen)
        ? { answer: false }
        : { answer: true, change: { put: [{ kind: "treasuryWatch", before, row }] } },
  });
  return moved === true;
}
