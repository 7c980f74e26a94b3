import type { SharedJob } from "../jobs/scheduler.ts";
import type { Context } from "../services/context.ts";
import { onceAcknowledged } from "./once-acknowledged.ts";

/** A job that one instance does at a time, and that is asked what it knows. */
export type HeldJob<Made> = {
  readonly begin: SharedJob["begin"];
  /** The job as it was begun with the lease; null where another instance does it. */
  readonly held: () => Made | null;
};

/**
 * @param name the job's name
 * @param make begins it; its runs wait while a restore is not acknowledged
 */
export function heldJob<Made extends { readonly run: () => Promise<unknown> }>(
  { instances }: Context,
  name: string,
  make: (at: Context) => Made,
): HeldJob<Made> {
  const lease = instances.lease(name);
  let made: Made | null = null;
  return {
    begin(at) {
      const begun = make(at);
      made = begun;
      return onceAcknowledged(() => begun.run());
    },
    held: () => (lease.token() === null ? null : made),
  };
}
