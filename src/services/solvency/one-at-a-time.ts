import { type Refusal, refuse } from "../../core/errors.ts";

/** Whether such work is under way in this process. */
let isUnderWay = false;

/**
 * Runs work that takes seconds of the processor, one piece at a time in this process. Meanwhile others are refused, and do not wait: a
 * person's request holds a snapshot of the ledger, which PostgreSQL ends where nothing is read from it for some seconds.
 */
export async function oneAtATime<Result>(work: () => Promise<Result>): Promise<Result | Refusal> {
  if (isUnderWay) return refuse("rate_limit_exceeded", "Another proof is being made; try again in a minute.");
  isUnderWay = true;
  try {
    return await work();
  } finally {
    isUnderWay = false;
  }
}
