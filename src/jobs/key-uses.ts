import { writeKeyUse } from "../services/auth/key-uses.ts";
import type { Context } from "../services/context.ts";
import { writeInSteps } from "./in-steps.ts";

/** Writes when each key was last used, every ten seconds and on stop. A run writes a key once, however often it was used. */
export const writeKeyUses = (ctx: Context): Promise<void> =>
  writeInSteps(ctx.keyUses.take(), (use) => writeKeyUse(ctx, use), ctx.keyUses.putBack);
