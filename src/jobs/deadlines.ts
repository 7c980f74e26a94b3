import type { Context } from "../services/context.ts";
import { expireWarrant } from "../services/warrants/expire.ts";

/** How many warrants one step expires, so that requests get their turn between steps. */
const STEP = 100;

/** The deadline sweep: every held warrant past its deadline expires and its hold returns (decisions.md, Warrants). */
export async function sweepDeadlines(ctx: Context): Promise<number> {
  let expired = 0;
  for (;;) {
    const overdue = ctx.store.reader.warrants.overdue(ctx.now(), STEP);
    const outcomes = await Promise.all(overdue.map((warrant) => expireWarrant(ctx, warrant)));
    const moved = outcomes.filter((outcome) => outcome === true).length;
    expired += moved;
    // What cannot be expired now, such as a purchase that is under way, comes again with the next run.
    if (overdue.length < STEP || moved === 0) return expired;
  }
}
