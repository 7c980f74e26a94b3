import type { Warrant } from "../core/warrant.ts";
import type { Context } from "../services/context.ts";
import { CHECK_LEASE_MS, interruptCheck } from "../services/warrants/interrupt.ts";

const STEP = 100;

/** At start nobody is checking anything: what a crash left in `verifying` is held again, and its keys are free. */
export const recoverAtStart = (ctx: Context): Promise<number> => interruptWhere(ctx, () => true);

/** While running: a check whose lease has run out is undone. */
export const recoverOverdueChecks = (ctx: Context): Promise<number> =>
  interruptWhere(ctx, (warrant) => warrant.movedAt + CHECK_LEASE_MS <= ctx.now());

async function interruptWhere(ctx: Context, isInterrupted: (warrant: Warrant) => boolean): Promise<number> {
  let recovered = 0;
  let afterId = "";
  for (;;) {
    const batch = ctx.store.reader.warrants.verifying(afterId, STEP);
    const outcomes = await Promise.all(
      batch.filter(isInterrupted).map((warrant) => interruptCheck(ctx, warrant)),
    );
    recovered += outcomes.filter((outcome) => outcome === true).length;
    const last = batch.at(-1);
    if (!last || batch.length < STEP) return recovered;
    afterId = last.id;
  }
}
