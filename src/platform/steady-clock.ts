import { uptime } from "node:os";
import { SECOND_MS } from "../core/time.ts";

/** How far the machine's uptime, which is in whole seconds, is ahead of this process's own clock. */
const STARTED_MS = uptime() * SECOND_MS - performance.now();

/**
 * Milliseconds by a clock that never jumps and never runs back, whatever is done to the machine's clock. It
 * counts on while the machine is suspended: the process's own clock stands still then, the uptime does not.
 */
export const steadyNow = (): number =>
  Math.max(performance.now(), uptime() * SECOND_MS - STARTED_MS - SECOND_MS);
