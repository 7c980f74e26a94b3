import type { Context } from "../services/context.ts";
import { expireWarrant } from "../services/warrants/expire.ts";

/** Warrants of one step share a transaction, and requests get their turn between steps: so a step is sized by how long it takes. */
const STEP_MAX = 50;
const STEP_MS = 5;
/** How many one run expires; the next one comes half a second later. */
const RUN_MAX = 20_000;
/** How many a run passes over: where so many cannot be expired, no more are tried. */
const LEFT_MAX = 1_000;

/** Where so many fail and none succeeds, it is not the warrants: the job fails. */
const FAULTS_MIN = 10;

/** Is called for a warrant that could not be expired; the others are, and it is tried again in the next run. */
type OnFault = (error: unknown, warrantId: string) => void;

/**
 * The deadline sweep: held warrants past their deadline expire, and their holds return. A warrant that cannot be expired
 * keeps no other from it.
 *
 * @returns how many it expired, at most 20,000
 * @throws what kept the first one from it, where none could be expired of ten or more
 */
export async function sweepDeadlines(ctx: Context, onFault: OnFault): Promise<number> {
  let expired = 0;
  const faults: unknown[] = [];
  // Those that stay overdue come again in the next run, and not before.
  const left = new Set<string>();
  // A process that has just started takes many times as long for each.
  let size = 1;
  while (expired < RUN_MAX && left.size < LEFT_MAX) {
    const startedAt = performance.now();
    const overdue = await ctx.store.read((reader) => reader.warrants.overdue(ctx.now(), left.size + size));
    const step = overdue.filter(({ id }) => !left.has(id));
    const outcomes = await Promise.all(
      step.map(async (warrant) => {
        try {
          if ((await expireWarrant(ctx, warrant)) === true) return true;
        } catch (error) {
          faults.push(error);
          onFault(error, warrant.id);
        }
        left.add(warrant.id);
        return false;
      }),
    );
    expired += outcomes.filter((outcome) => outcome).length;
    if (step.length < size) break;
    size = performance.now() - startedAt < STEP_MS ? Math.min(2 * size, STEP_MAX) : Math.ceil(size / 2);
    await new Promise(setImmediate);
  }
  if (expired === 0 && faults.length >= FAULTS_MIN) throw faults[0];
  return expired;
}
