import type { Config, Secrets } from "../config.ts";
import { sha256 } from "../core/canonical.ts";
import { disagreementOf } from "../core/clock.ts";
import { type Refusal, refuse } from "../core/errors.ts";
import { clockProblem, readinessOf, type Vitals } from "../core/operation.ts";
import { MODES } from "../core/roles.ts";
import { MINUTE_MS, SECOND_MS } from "../core/time.ts";
import type { Answered, Operation } from "../http/operation.ts";
import { followAgents } from "../jobs/agents.ts";
import { type ClockWatch, createClockWatch } from "../jobs/clock-watch.ts";
import { sweepDeadlines } from "../jobs/deadlines.ts";
import { writeKeyUses } from "../jobs/key-uses.ts";
import { noticesJob, troubleWatch } from "../jobs/notices.ts";
import { recoverOverdueChecks } from "../jobs/recover.ts";
import { escalationReminders } from "../jobs/reminders.ts";
import { forgetOld, retentionJob } from "../jobs/retention.ts";
import { type Job, type Run, startScheduler } from "../jobs/scheduler.ts";
import { writeSignInFailures } from "../jobs/sign-in-failures.ts";
import { deliverWebhooks } from "../jobs/webhooks.ts";
import { freeBytesOf } from "../platform/disk.ts";
import { logError, logFault, logInfo, logWarning } from "../platform/log.ts";
import type { Figures, Metrics } from "../platform/metrics.ts";
import { createRefusalLog } from "../platform/refusal-log.ts";
import type { Context } from "../services/context.ts";
import { isReadable } from "../services/figures.ts";
import { awaitsAcknowledgement, rememberServer } from "../services/instance.ts";
import { anchor } from "../services/log/anchor.ts";
import { tellOfLostEvents } from "../services/notices/trouble.ts";
import { runDeliveries } from "../services/webhooks/deliver.ts";
import { BACKUP_JOB } from "./backups.ts";
import { folderOf } from "./database.ts";
import { ledgerReading } from "./ledger-reading.ts";
import { onceAcknowledged } from "./once-acknowledged.ts";
import { ownAudit } from "./own-audit.ts";
import type { WatchedDatabase } from "./store.ts";

/** The jobs that run beside the requests, and the service's own figures: readiness, metrics and the request log. */

export type OperationOptions = {
  readonly config: Config;
  readonly secrets: Secrets;
  readonly ctx: Context;
  readonly metrics: Metrics;
  readonly evaluators: () => Figures["evaluators"];
  /** The time of the newest id before this start, epoch milliseconds. */
  readonly lastSeenAt: number;
  /** A clock that never jumps, in milliseconds. */
  readonly monotonicNow: () => number;
  /** How to start this executable again. */
  readonly self: readonly string[];
  /** Null where the ledger is in the data folder. */
  readonly database: WatchedDatabase | null;
  readonly newestBackup: () => Figures["newestBackup"];
  readonly connectionsClosed: () => number;
  /** For how long an anchor on a chain is late; null where there are none. */
  readonly anchorLateMs: () => number | null;
  readonly witnesses: () => Promise<Figures["witnesses"]>;
  readonly deposits: () => Promise<Figures["deposits"]>;
  readonly treasuries: () => Figures["treasuries"];
  /** Further jobs, which need more than the context. */
  readonly jobs: readonly Job[];
};

export type RunningOperation = {
  readonly operation: Operation;
  readonly onAnswered: (answered: Answered) => void;
  /** Starts no further job, and resolves when the running ones have ended. */
  stop(): Promise<void>;
};

export function startOperation(options: OperationOptions): RunningOperation {
  const { config, secrets, ctx, metrics, evaluators } = options;
  const logRefusal = createRefusalLog(undefined, options.monotonicNow);
  const folder = folderOf(config, secrets);
  const audit = ownAudit(options);
  const clock = createClockWatch({
    now: ctx.now,
    monotonicNow: options.monotonicNow,
    lastRecordedAt: ctx.store.lastRecordedAt,
    onDisagrees: ({ behindLedgerMs, jumpedMs }) =>
      logWarning("the clock disagrees: deadlines, retention, recovery and payouts on chains wait", {
        behind_ledger_ms: behindLedgerMs,
        jumped_ms: jumpedMs,
      }),
    onAgrees: () =>
      logWarning("the clock agrees again: deadlines, retention, recovery and payouts on chains go on"),
  });
  const troubles = troublesJob(options, () => vitals());
  const scheduler = startScheduler([...jobsOf(options, clock), audit.job, troubles], {
    ctx,
    onFault: (job, error) => logFault("job failed", error, { job }),
    now: Date.now,
  });

  const vitals = async (reading: Context = ctx): Promise<Vitals> => {
    const database = options.database?.figures() ?? null;
    // A database that is known to be away is not asked: the answer would take as long as it is waited for.
    const readable = database?.isReachable !== false && (await isReadable(reading));
    const jobs = scheduler.states();
    const written = jobs.find(({ name }) => name === LEDGER_JOB);
    const [found, replicas] = await Promise.all([
      audit.outcome(),
      database?.isReachable ? options.database?.replicas() : null,
    ]);
    return {
      ledger: { readable, writable: written?.lastOutcome !== "failed" && !ctx.instances.isLost() },
      freeBytes: folder === null ? null : freeBytesOf(folder),
      jobs,
      audit: found,
      // Comparing the clock may need a read of the ledger.
      clock: readable ? clock.disagreement() : null,
      treasuries: options.treasuries(),
      database,
      replicas: replicas ?? [],
    };
  };
  const ofLedger = ledgerReading(options);
  const figures = async (): Promise<Figures> => {
    const known = await vitals();
    const { jobs, audit, freeBytes, database, replicas } = known;
    return {
      ...(await ofLedger()),
      ...{ jobs, audit, freeBytes, database, replicas },
      ready: readinessOf(known).ready,
      clockDisagrees: known.clock !== null,
      places: MODES.map((mode) => ({ mode, ...ctx.places.figures(mode) })),
      evaluators: evaluators(),
      newestBackup: options.newestBackup(),
      connectionsClosed: options.connectionsClosed(),
      anchorLateMs: options.anchorLateMs(),
      treasuries: known.treasuries,
    };
  };
  return {
    operation: {
      readiness: async (reading) => readinessOf(await vitals(reading)),
      metrics: () => metrics.text(figures),
      metricsTokenHash: secrets.metricsToken === null ? null : sha256(secrets.metricsToken),
    },
    onAnswered(answered) {
      metrics.answered(answered);
      logRefusal(answered);
      if (config.log === "requests") logRequest(answered);
    },
    async stop() {
      audit.stop();
      await scheduler.stop();
      // Without these, what came since the last runs of the jobs would be lost.
      await writeKeyUses(ctx).catch((error: unknown) => logError("job failed", error, { job: KEY_USES_JOB }));
      await writeSignInFailures(ctx, true).catch((error: unknown) =>
        logError("job failed", error, { job: SIGN_IN_FAILURES_JOB }),
      );
    },
  };
}

/** Tells admins what is wrong with the service, by what it knows of itself. */
function troublesJob({ ctx, monotonicNow }: OperationOptions, vitals: () => Promise<Vitals>): Job {
  const watch = onceAcknowledged(troubleWatch(ctx, { monotonicNow, vitals, backupJob: BACKUP_JOB }));
  // Of each, since it knows only itself. What several say within a day is told once.
  return { name: "troubles", doneBy: "each", everyMs: MINUTE_MS, run: watch };
}

const LEDGER_JOB = "ledger";
const KEY_USES_JOB = "key-uses";
const SIGN_IN_FAILURES_JOB = "sign-in-failures";

/** The jobs that the command line may run by hand. They answer how many items they worked on; null where they do not count. */
export const JOBS = {
  deadlines: (ctx: Context) => sweepDeadlines(ctx, onExpiryFault),
  async agents(ctx: Context) {
    await followAgents(ctx, onAgentFault);
    return null;
  },
  recover: (ctx: Context) => recoverOverdueChecks(ctx, onRecoveryFault),
  // A run by hand counts no time. It deletes what the last run of the server left, by that server's setting.
  retention: forgetOld,
  // When run by hand it names every escalation that has waited for a day, since its last run is not known.
  reminders: (ctx: Context) => escalationReminders(ctx, 0, logWarning)(),
  anchor,
  webhooks: (ctx: Context) => runDeliveries(ctx, onDeliveryFault).then(({ attempted }) => attempted),
} as const satisfies Record<string, (ctx: Context) => Promise<number | null>>;

/** Jobs that act by the clock and cannot be undone. They wait while the clock is wrong. */
const NEED_THE_CLOCK: readonly string[] = ["deadlines", "recover", "retention"] satisfies JobName[];

type JobName = keyof typeof JOBS;

/** What a restored copy does not do before its restore is acknowledged, and why. */
const WAIT_FOR_ACKNOWLEDGEMENT: Partial<Record<JobName, Refusal>> = {
  // The log may have been signed further since the backup. Another checkpoint in place of one of those would be a fork.
  anchor: refuse(
    "restore_unacknowledged",
    "The ledger was restored from a backup, which may have forgotten checkpoints of its log. It signs new ones when its operator has run `holdfast restore acknowledge`.",
  ),
  reminders: refuse(
    "restore_unacknowledged",
    "The ledger was restored from a backup, which may have forgotten decisions on its escalations. It reminds of them when its operator has run `holdfast restore acknowledge`.",
  ),
};

/**
 * Runs a job for the command line. Where the clock is behind the ledger, one that needs it is refused; and so is what must
 * not be done before a restore is acknowledged.
 */
export async function runJobByHand(name: JobName, ctx: Context): Promise<number | null | Refusal> {
  const disagreement = disagreementOf({
    now: ctx.now(),
    lastRecordedAt: ctx.store.lastRecordedAt(),
    // A process that has just started cannot know whether the clock jumped before.
    wallElapsedMs: 0,
    monotonicElapsedMs: 0,
  });
  if (disagreement && NEED_THE_CLOCK.includes(name))
    return refuse("internal_error", clockProblem(disagreement));
  const instance = await ctx.store.read((reader) => reader.instance.get());
  const waits = awaitsAcknowledgement(instance) ? WAIT_FOR_ACKNOWLEDGEMENT[name] : undefined;
  return waits ?? JOBS[name](ctx);
}

const onExpiryFault = (error: unknown, warrantId: string): void =>
  logFault("a warrant could not be expired", error, { warrant_id: warrantId });

const onAgentFault = (error: unknown, agentId: string): void =>
  logFault("the warrants of an agent could not be moved", error, { agent_id: agentId });

export const onRecoveryFault = (error: unknown, warrantId: string): void =>
  logFault("a check could not be undone", error, { warrant_id: warrantId });

const onNoticeFault = (error: unknown, noticeId: string): void =>
  logFault("a notice could not be sent", error, { notice_id: noticeId });

const onDeliveryFault = (error: unknown, deliveryId: string): void =>
  logFault("a webhook could not be delivered", error, { delivery_id: deliveryId });

/** A server that started on a full disk could not store its address. It is stored here, once there is space. */
async function tryLedger(ctx: Context): Promise<void> {
  await ctx.store.probe();
  await rememberServer(ctx);
}

function jobsOf(
  { config, lastSeenAt, monotonicNow, jobs: further }: OperationOptions,
  clock: ClockWatch,
): readonly Job[] {
  /** The run goes by the time at which the clock agreed, since the clock may jump while it goes on. */
  const whenClockAgrees =
    (run: Run): Run =>
    async (at) => {
      const agreedNow = clock.agreedNow();
      if (agreedNow !== null) await run({ ...at, now: () => agreedNow });
    };
  const notices = { monotonicNow, agreedNow: clock.agreedNow, onFault: onNoticeFault };
  const jobs: readonly Job[] = [
    ...ownJobs(),
    {
      name: "deadlines",
      doneBy: "one",
      everyMs: SECOND_MS / 2,
      begin: () => onceAcknowledged(JOBS.deadlines),
    },
    { name: "agents", doneBy: "one", everyMs: MINUTE_MS, begin: () => JOBS.agents },
    { name: "recover", doneBy: "one", everyMs: MINUTE_MS / 4, begin: () => JOBS.recover },
    {
      ...{ name: "retention", doneBy: "one", everyMs: 10 * MINUTE_MS, firstMs: MINUTE_MS },
      // A suspended machine's time is not counted, as nothing could be asked of it.
      begin: (at) => retentionJob(at, config.idempotencyDays, () => performance.now()),
    },
    {
      ...{ name: "reminders", doneBy: "one", everyMs: 10 * MINUTE_MS, firstMs: 10 * SECOND_MS },
      begin: (at) => onceAcknowledged(escalationReminders(at, lastSeenAt, logWarning)),
    },
    {
      ...{ name: "notices", doneBy: "one", everyMs: SECOND_MS },
      begin: (at) => onceAcknowledged(noticesJob(at, notices)),
    },
    {
      name: "anchor",
      doneBy: "one",
      everyMs: config.checkpointMs,
      begin: () => onceAcknowledged(JOBS.anchor),
    },
    ...further,
  ];
  return jobs.map((job): Job => {
    if (!job.needsTheClock && !NEED_THE_CLOCK.includes(job.name)) return job;
    return job.doneBy === "one"
      ? { ...job, begin: (at) => whenClockAgrees(job.begin(at)) }
      : { ...job, run: whenClockAgrees(job.run) };
  });
}

/** Jobs about what each process knows or does by itself. */
const ownJobs = (): readonly Job[] => [
  // Whether this process can write.
  { name: LEDGER_JOB, doneBy: "each", everyMs: 15 * SECOND_MS, firstMs: SECOND_MS, run: tryLedger },
  // These were counted in its memory.
  { name: KEY_USES_JOB, doneBy: "each", everyMs: 10 * SECOND_MS, run: (at) => writeKeyUses(at) },
  {
    name: SIGN_IN_FAILURES_JOB,
    doneBy: "each",
    everyMs: 5 * SECOND_MS,
    run: (at) => writeSignInFailures(at),
  },
  { name: "lost-events", doneBy: "each", everyMs: SECOND_MS, run: onceAcknowledged(tellOfLostEvents) },
  // Each endpoint belongs to one instance, and all instances send.
  {
    ...{ name: "webhooks", doneBy: "each", everyMs: SECOND_MS / 10 },
    run: (at) => deliverWebhooks(at, onDeliveryFault),
  },
];

const logRequest = (answered: Answered): void =>
  logInfo("request", {
    request_id: answered.requestId,
    caller_request_id: answered.callerRequestId,
    method: answered.method,
    route: answered.route,
    status: answered.status,
    duration_ms: Math.round(answered.durationMs * 10) / 10,
    caller: answered.caller,
    caller_id: answered.callerId,
    address: answered.client().address,
  });
