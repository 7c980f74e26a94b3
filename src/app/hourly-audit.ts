import type { AuditOutcome } from "../core/operation.ts";
import { MINUTE_MS } from "../core/time.ts";
import type { Job } from "../jobs/scheduler.ts";
import { createWatchdog } from "../jobs/watchdog.ts";
import { createAuditChild } from "../platform/audit-child.ts";
import { logError } from "../platform/log.ts";
import type { Context } from "../services/context.ts";
import { publicKeysOf } from "./audit-beside-server.ts";
import { AUDIT_ARGUMENT } from "./children.ts";

/** The audit that a server makes of its ledger. */
type HourlyAudit = {
  readonly jobs: readonly Job[];
  outcome(): AuditOutcome | null;
  stop(): void;
};

/** A database is audited by `holdfast audit` alone. */
export const NO_AUDIT: HourlyAudit = { jobs: [], outcome: () => null, stop: () => {} };

/** @param self how to start this executable again: the audit runs in a child */
export function hourlyAudit(
  { self, ctx }: { readonly self: readonly string[]; readonly ctx: Context },
  dataFolder: string,
): HourlyAudit {
  const child = createAuditChild([...self, ...[AUDIT_ARGUMENT, dataFolder, publicKeysOf(ctx)]]);
  const { run, outcome } = createWatchdog(
    child.audit,
    (messages) =>
      logError("the ledger disagrees with itself; `holdfast audit` lists everything", messages[0], {
        disagreements: messages.length,
      }),
    Date.now,
  );
  const job: Job = {
    ...{ name: "audit", doneBy: "one", everyMs: 60 * MINUTE_MS, firstMs: MINUTE_MS },
    begin: () => run,
  };
  return { jobs: [job], outcome, stop: child.stop };
}
