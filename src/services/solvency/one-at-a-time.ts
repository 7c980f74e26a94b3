import { type Refusal, refuse } from "../../core/errors.ts";
import type { Store } from "../../store/store.ts";

/** How many may wait for the one that is under way. */
const WAITING_MAX = 4;

type Line = { last: Promise<unknown>; length: number };
const lines = new WeakMap<Store, Line>();

/** Runs work that takes seconds of the processor, one at a time in this process. Where too many wait already, it is refused. */
export async function oneAtATime<Result>(
  store: Store,
  work: () => Promise<Result>,
): Promise<Result | Refusal> {
  const line = lines.get(store) ?? { last: Promise.resolve(), length: 0 };
  lines.set(store, line);
  if (line.length > WAITING_MAX)
    return refuse("rate_limit_exceeded", "Others are having proofs made; try again in a minute.");
  line.length += 1;
  const done = line.last.then(work);
  line.last = done.catch(() => {});
  try {
    return await done;
  } finally {
    line.length -= 1;
  }
}
