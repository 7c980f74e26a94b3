import { type Refusal, refuse } from "../../core/errors.ts";
import { MINUTE_MS } from "../../core/time.ts";

/** The work that is under way in this process. `isWanted`: another organisation has asked meanwhile. */
let underWay: { readonly organisationId: string; isWanted: boolean } | null = null;

/** Since when an organisation that had the place gives way to others, by its id. */
const givingWay = new Map<string, number>();

/**
 * Runs work that takes seconds of the processor, one piece at a time in this process. Meanwhile others are refused, and do not wait: a
 * person's request holds a snapshot of the ledger, which PostgreSQL ends where nothing is read from it for some seconds. Where another
 * organisation was refused, the one that had the place gives way for the minute in which that one asks again.
 */
export async function oneAtATime<Result>(
  organisationId: string,
  now: () => number,
  work: () => Promise<Result>,
): Promise<Result | Refusal> {
  if (underWay !== null) {
    if (underWay.organisationId !== organisationId) underWay.isWanted = true;
    return refuse("rate_limit_exceeded", "Another proof is being made; try again in a minute.");
  }
  // A clock that was set back ends it too.
  for (const [id, since] of givingWay) if (Math.abs(now() - since) >= MINUTE_MS) givingWay.delete(id);
  if (givingWay.has(organisationId))
    return refuse("rate_limit_exceeded", "It is another organisation's turn; try again in a minute.");
  const mine = { organisationId, isWanted: false };
  underWay = mine;
  try {
    return await work();
  } finally {
    underWay = null;
    if (mine.isWanted) givingWay.set(organisationId, now());
  }
}
