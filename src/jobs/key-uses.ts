import { writeKeyUse } from "../services/auth/key-uses.ts";
import type { Context } from "../services/context.ts";

/** How many are written before the writer is left to requests. */
const STEP = 100;

/** Writes when each key last called. Every ten seconds, and on stop: a key is written once a run, however often it called. */
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
