import type { Config, Secrets } from "../config.ts";
import { rootMessage } from "../core/errors.ts";
import type { AuditOutcome } from "../core/operation.ts";
import { MINUTE_MS, SECOND_MS } from "../core/time.ts";
import type { Job, Run } from "../jobs/scheduler.ts";
import { LeaseLost } from "../jobs/under-lease.ts";
import { createWatchdog } from "../jobs/watchdog.ts";
import { type AuditChild, createAuditChild } from "../platform/audit-child.ts";
import { logError, logWarning } from "../platform/log.ts";
import type { Context } from "../services/context.ts";
import { publicKeysOf } from "./audit-beside-server.ts";
import { AUDIT_ARGUMENT, DATABASE_AUDIT_ARGUMENT } from "./children.ts";
import type { WatchedDatabase } from "./store.ts";

/** The audit that a server makes of its ledger. */
type OwnAudit = {
  readonly job: Job;
  /** What the last one found. Of a database, whichever instance made it. */
  outcome(): Promise<AuditOutcome | null>;
  stop(): void;
};

type Options = {
  readonly config: Config;
  readonly secrets: Secrets;
  readonly ctx: Context;
  /** How to start this executable again: the audit runs in a child. */
  readonly self: readonly string[];
  /** Null where the ledger is in the data folder. */
  readonly database: WatchedDatabase | null;
};

export function ownAudit(options: Options): OwnAudit {
  const { config, secrets, ctx, self, database } = options;
  const keys = publicKeysOf(ctx);
  if (secrets.database === null || database === null) {
    const child = createAuditChild([...self, AUDIT_ARGUMENT, config.data, keys]);
    const { run, outcome } = watchdogOf(child);
    const job = { ...timesOf(config), begin: () => run };
    return { job, outcome: async () => outcome(), stop: child.stop };
  }
  const place = database.auditCopies.folder;
  const child = createAuditChild([...self, DATABASE_AUDIT_ARGUMENT, place, keys], {
    // On its way to the child nobody else reads it: arguments are shown to every user of a machine.
    input: `${JSON.stringify(secrets.database)}\n`,
    // SQLite sorts in files of its own.
    env: { SQLITE_TMPDIR: place },
  });
  return { ...auditOfDatabase(config, ctx, child, database), stop: child.stop };
}

const watchdogOf = (child: AuditChild) =>
  createWatchdog(
    child.audit,
    (messages) =>
      logError("the ledger disagrees with itself; `holdfast audit` lists everything", messages[0], {
        disagreements: messages.length,
      }),
    Date.now,
  );

const timesOf = ({ auditMs }: Config) =>
  ({ name: "audit", doneBy: "one", everyMs: auditMs, firstMs: MINUTE_MS }) as const;

/** How often it is looked whether another instance has the lease now. */
const LEASE_LOOK_MS = SECOND_MS;

/** One instance audits at a time, and keeps the outcome for all of them. */
function auditOfDatabase(
  config: Config,
  { instances }: Context,
  child: AuditChild,
  { auditCopies, lastAudit, figures }: WatchedDatabase,
): Omit<OwnAudit, "stop"> {
  try {
    // This process may have been killed in the middle of an audit before.
    auditCopies.removeLeft();
  } catch (error) {
    logWarning("the folder in which the ledger is audited cannot be read", { error: rootMessage(error) });
  }
  const lease = instances.lease(timesOf(config).name);
  const { run } = watchdogOf(child);

  async function runUnderLease(token: number | null): Promise<void> {
    const isHeld = () => lease.token() === token;
    const timer = setInterval(() => isHeld() || child.end(), LEASE_LOOK_MS);
    try {
      await lastAudit.keep(await run());
    } catch (error) {
      throw isHeld() ? error : new LeaseLost("another instance audits the ledger now", { cause: error });
    } finally {
      clearInterval(timer);
    }
  }

  let known: AuditOutcome | null = null;
  return {
    job: {
      ...timesOf(config),
      // Whoever has too little space for the copy can still serve. That the last audit is old is seen in the metrics.
      patienceMs: Number.POSITIVE_INFINITY,
      begin(): Run {
        const token = lease.token();
        return () => runUnderLease(token);
      },
    },
    async outcome() {
      if (figures().isReachable) known = await lastAudit.read().catch(() => known);
      return known;
    },
  };
}
