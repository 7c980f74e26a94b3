import { writeKeyUse } from "../services/auth/key-uses.ts";
import type { Context } from "../services/context.ts";

/** How many uses are written before requests are served again. */
const STEP = 100;

/** Writes when each key was last used, every ten seconds and on stop. A run writes a key once, however often it was used. */
export async function writeKeyUses(ctx: Context): Promise<void> {
  const uses = ctx.keyUses.take();
  for (let start = 0; start < uses.length; start += STEP) {
    try {
      await Promise.all(uses.slice(start, start + STEP).map((use) => writeKeyUse(ctx, use)));
    } catch (error) {
      ctx.keyUses.putBack(uses.slice(start));
      throw error;
    }
  }
}
