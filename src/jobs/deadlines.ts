import type { Warrant } from "../core/warrant.ts";
import type { Context } from "../services/context.ts";
import { expireWarrant } from "../services/warrants/expire.ts";

/** How many warrants one step expires: they share a transaction, and requests get their turn between steps. */
const STEP = 25;
/** How many one run expires; the next one comes half a second later. */
const RUN_MAX = 20_000;

/**
 * The deadline sweep: held warrants past their deadline expire and their holds return (decisions.md, Warrants). One that
 * cannot be expired keeps no other from it.
 *
 * @returns how many it expired, at most 20,000
 * @throws what kept the first one from it, once the others are done
 */
export async function sweepDeadlines(ctx: Context): Promise<number> {
  let expired = 0;
  let failure: { readonly error: unknown } | null = null;
  while (expired < RUN_MAX) {
    const overdue = ctx.store.reader.warrants.overdue(ctx.now(), STEP);
    const step = await expireAll(ctx, overdue);
    expired += step.expired;
    failure ??= step.failure;
    // Those that stay overdue come again, now or in the next run: without progress that would be for ever.
    if (overdue.length < STEP || step.expired === 0) break;
    await new Promise(setImmediate);
  }
  if (failure) throw failure.error;
  return expired;
}

async function expireAll(ctx: Context, warrants: readonly Warrant[]) {
  const outcomes = await Promise.allSettled(warrants.map((warrant) => expireWarrant(ctx, warrant)));
  const failed = outcomes.find((outcome) => outcome.status === "rejected");
  return {
    expired: outcomes.filter((outcome) => outcome.status === "fulfilled" && outcome.value === true).length,
    failure: failed ? { error: failed.reason as unknown } : null,
  };
}
