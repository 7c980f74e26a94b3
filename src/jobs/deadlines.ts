import type { Context } from "../services/context.ts";
import { expireWarrant } from "../services/warrants/expire.ts";

/**
 * The most warrants of a step. They share a transaction, and requests wait for its end, so a step takes only
 * as many as fit into about STEP_MS.
 */
const STEP_MAX = 50;
const STEP_MS = 5;
/** How many warrants one run expires. The next run comes half a second later. */
const RUN_MAX = 20_000;
/** A run stops when it has failed to expire this many warrants. */
const LEFT_MAX = 1_000;

/** Where this many fail and none succeeds, the fault is not in single warrants, so the whole job fails. */
const FAULTS_MIN = 10;

/** Is called for a warrant that could not be expired. The run goes on with the others; the next run tries it again. */
type OnFault = (error: unknown, warrantId: string) => void;

/**
 * The deadline sweep: held warrants past their deadline expire, and their holds return. One that cannot be expired does not
 * stop the others.
 *
 * @returns how many it expired, at most 20,000
 * @throws the first error, where ten or more failed and none was expired
 */
export async function sweepDeadlines(ctx: Context, onFault: OnFault): Promise<number> {
  let expired = 0;
  const faults: unknown[] = [];
  // The warrants that could not be expired. This run does not try them again.
  const left = new Set<string>();
  // The first step is one warrant, since a process that has just started is many times slower.
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
