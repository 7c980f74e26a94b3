import type { Context } from "../services/context.ts";
import { expireWarrant } from "../services/warrants/expire.ts";

/** Warrants of one step share a transaction, and requests get their turn between steps: so a step is sized by how long it takes. */
const STEP_MAX = 50;
const STEP_MS = 5;
/** How many one run expires; the next one comes half a second later. */
const RUN_MAX = 20_000;
/** How many a run passes over: where so many cannot be expired, no more are tried. */
const LEFT_MAX = 1_000;

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
  // Those that stay overdue come again in the next run, and not before.
  const left = new Set<string>();
  // A process that has just started takes many times as long for each.
  let size = 1;
  while (expired < RUN_MAX && left.size < LEFT_MAX) {
    const startedAt = performance.now();
    const overdue = ctx.store.reader.warrants.overdue(ctx.now(), left.size + size);
    const step = overdue.filter(({ id }) => !left.has(id));
    const outcomes = await Promise.allSettled(step.map((warrant) => expireWarrant(ctx, warrant)));
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.status === "fulfilled" && outcome.value === true) expired += 1;
      else left.add(step[index]?.id ?? "");
      if (outcome.status === "rejected") failure ??= { error: outcome.reason };
    }
    if (step.length < size) break;
    size = performance.now() - startedAt < STEP_MS ? Math.min(2 * size, STEP_MAX) : Math.ceil(size / 2);
    await new Promise(setImmediate);
  }
  if (failure) throw failure.error;
  return expired;
}
