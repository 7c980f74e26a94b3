import { Counter, Gauge, Registry } from "prom-client";
import type { AuditOutcome, JobState } from "../core/operation.ts";
import { SECOND_MS } from "../core/time.ts";
import { createHistogram } from "./counts.ts";
import { createRequestCounts, type RequestCounts } from "./request-counts.ts";

/** What is read when somebody asks, rather than counted as it happens. Times are epoch milliseconds. */
export type Figures = {
  readonly warrantsByState: Readonly<Record<string, number>>;
  readonly warrantsOverdue: number;
  /** In the smallest unit, as digits: of a mode, an asset and `available`, `held` or `paid`. */
  readonly money: readonly {
    readonly mode: string;
    readonly asset: string;
    readonly state: string;
    readonly amount: bigint;
  }[];
  readonly escalations: { readonly count: number; readonly oldestMs: number };
  /** `exhausted` and `notSent` are of this process. */
  readonly deliveries: {
    readonly waiting: number;
    readonly lateMs: number;
    readonly exhausted: number;
    readonly notSent: number;
  };
  /** Purchases that have not ended, and payments of which it is not known whether they were made. */
  readonly purchases: { readonly unfinished: number; readonly unknown: number; readonly lateMs: number };
  readonly jobs: readonly JobState[];
  readonly evaluators: readonly {
    readonly pool: string;
    readonly size: number;
    readonly busy: number;
    readonly waiting: number;
    readonly restarts: number;
  }[];
  readonly audit: AuditOutcome | null;
  readonly freeBytes: number | null;
  /** When the newest scheduled backup was made, 0 where there is none; null where none are asked for, or the folder is not read yet. */
  readonly newestBackupAt: number | null;
  readonly ready: boolean;
  readonly clockDisagrees: boolean;
};

/** Counts what happens, and writes all of it for Prometheus. It knows nothing of the service. */
export type Metrics = {
  readonly answered: RequestCounts;
  committed(commands: number, durationMs: number): void;
  /** An attempt of a webhook; null where no response came. */
  webhookAttempted(code: number | null): void;
  /** Prometheus text. `figures` are read as late as may be. */
  text(figures: () => Promise<Figures>): Promise<string>;
};

const COMMIT_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];
const BATCH_SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256];

export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const answered = createRequestCounts(registers);
  const batches = createHistogram({
    name: "holdfast_commit_commands",
    help: "Commands that shared a transaction and its fsync.",
    labelNames: [],
    buckets: BATCH_SIZES,
    registers,
  }).series({});
  const commitSeconds = createHistogram({
    name: "holdfast_commit_duration_seconds",
    help: "A transaction, its fsync included; the main thread waits for it.",
    labelNames: [],
    buckets: COMMIT_SECONDS,
    registers,
  }).series({});
  const attempts = new Counter({
    name: "holdfast_webhook_attempts_total",
    help: "Attempts to deliver an event: delivered (2xx), refused (another status), no_response.",
    labelNames: ["outcome"],
    registers,
  });
  const show = createGauges(registers);

  return {
    answered,
    committed(commands, durationMs) {
      batches.observe(commands);
      commitSeconds.observe(durationMs / SECOND_MS);
    },
    webhookAttempted(code) {
      const delivered = code !== null && code >= 200 && code <= 299;
      attempts.inc({ outcome: delivered ? "delivered" : code === null ? "no_response" : "refused" });
    },
    async text(figures) {
      show(await figures());
      return registry.metrics();
    },
  };
}

/** Assets beyond these, in order of mode and name, are left out: whoever records deposits may name as many as they like. */
const MONEY_MAX = 300;

/** What is read as the text is asked for. */
function createGauges(registers: Registry[]): (figures: Figures) => void {
  const gauge = <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
    new Gauge<Label>({ name, help, labelNames: [...labelNames], registers });
  /** A counter whose value is known elsewhere. */
  const total = <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) => {
    const counter = new Counter<Label>({ name, help, labelNames: [...labelNames], registers });
    return (values: readonly (readonly [labels: Partial<Record<Label, string>>, value: number])[]) => {
      counter.reset();
      for (const [labels, value] of values) counter.inc(labels, value);
    };
  };
  const inUnits =
    "in the asset's smallest unit. A figure above 2^53 is rounded here, since Prometheus counts in doubles; the books are not.";
  const warrants = gauge("holdfast_warrants", "Warrants by state, of both modes.", ["state"]);
  const overdue = gauge("holdfast_warrants_overdue", "Held warrants past their deadline, not yet swept.");
  const money = gauge("holdfast_money", `Money on the books, ${inUnits}`, ["mode", "asset", "state"]);
  const escalations = gauge("holdfast_escalations_open", "Escalations that wait for a person.");
  const oldest = gauge("holdfast_escalation_oldest_seconds", "How long the first of them has waited.");
  const waiting = gauge("holdfast_webhook_deliveries_waiting", "Deliveries that are not over.");
  const late = gauge("holdfast_webhook_late_seconds", "How long the longest due attempt has waited.");
  const showExhausted = total(
    "holdfast_webhook_exhausted_total",
    "Deliveries given up after their fourth attempt: events that their endpoint has not heard of.",
  );
  const showNotSent = total(
    "holdfast_webhook_not_sent_total",
    "Attempts that failed on this side, before anything was sent; the log says why.",
  );
  const unfinished = gauge("holdfast_purchases_unfinished", "Purchases under way, or cut off.");
  const unknown = gauge("holdfast_payments_unknown", "Payments that the chain is still to be asked about.");
  const unknownLate = gauge(
    "holdfast_payments_late_seconds",
    "How long the longest due question about a payment has waited.",
  );
  const free = gauge("holdfast_disk_free_bytes", "What is left on the disk of the data folder.");
  const newestBackup = gauge(
    "holdfast_backup_newest_timestamp_seconds",
    "When the newest nightly backup was made; 0 where there is none. Only where a folder for them has been looked into.",
  );
  // Where none are asked for, or nobody has looked yet, there is no age of one, and no alert.
  newestBackup.remove();
  const ready = gauge("holdfast_ready", "1 where /readyz answers 200, 0 where it does not.");
  const clockDisagrees = gauge(
    "holdfast_clock_disagrees",
    "1 where the clock is behind the ledger's last commit, or has jumped: deadlines, retention and recovery wait.",
  );
  const showJobs = createJobGauges(gauge, total);
  const showEvaluators = createEvaluatorGauges(gauge, total);
  const showAudit = createAuditGauges(gauge);
  const showProcess = createProcessGauges(gauge, total);
  return (figures) => {
    for (const [state, count] of Object.entries(figures.warrantsByState)) warrants.set({ state }, count);
    overdue.set(figures.warrantsOverdue);
    money.reset();
    for (const { amount, ...labels } of figures.money.slice(0, MONEY_MAX)) money.set(labels, Number(amount));
    escalations.set(figures.escalations.count);
    oldest.set(figures.escalations.oldestMs / SECOND_MS);
    waiting.set(figures.deliveries.waiting);
    late.set(figures.deliveries.lateMs / SECOND_MS);
    showExhausted([[{}, figures.deliveries.exhausted]]);
    showNotSent([[{}, figures.deliveries.notSent]]);
    unfinished.set(figures.purchases.unfinished);
    unknown.set(figures.purchases.unknown);
    unknownLate.set(figures.purchases.lateMs / SECOND_MS);
    if (figures.newestBackupAt !== null) newestBackup.set(figures.newestBackupAt / SECOND_MS);
    if (figures.freeBytes !== null) free.set(figures.freeBytes);
    ready.set(figures.ready ? 1 : 0);
    clockDisagrees.set(figures.clockDisagrees ? 1 : 0);
    showJobs(figures.jobs);
    showEvaluators(figures.evaluators);
    showAudit(figures.audit);
    showProcess();
  };
}

type MakeGauge = <Label extends string>(
  name: string,
  help: string,
  labelNames?: readonly Label[],
) => Gauge<Label>;

type MakeTotal = <Label extends string>(
  name: string,
  help: string,
  labelNames?: readonly Label[],
) => (values: readonly (readonly [labels: Partial<Record<Label, string>>, value: number])[]) => void;

function createJobGauges(gauge: MakeGauge, total: MakeTotal): (jobs: readonly JobState[]) => void {
  const labels = ["job"] as const;
  const showRuns = total("holdfast_job_runs_total", "Runs that ended.", labels);
  const showFailures = total("holdfast_job_failures_total", "Runs that failed.", labels);
  const running = gauge("holdfast_job_running", "1 while it runs.", labels);
  const lastRun = gauge("holdfast_job_last_run_timestamp_seconds", "When its last run began.", labels);
  const duration = gauge("holdfast_job_last_duration_seconds", "How long its last run took.", labels);
  const failed = gauge("holdfast_job_last_failed", "1 where its last run failed.", labels);
  const lag = gauge("holdfast_job_lag_seconds", "How long its next run is overdue.", labels);
  const stuck = gauge("holdfast_job_stuck", "1 where no run has succeeded for too long.", labels);
  return (jobs) => {
    showRuns(jobs.map(({ name, runs }) => [{ job: name }, runs]));
    showFailures(jobs.map(({ name, failures }) => [{ job: name }, failures]));
    for (const state of jobs) {
      const job = { job: state.name };
      running.set(job, state.running ? 1 : 0);
      if (state.lastStartedAt !== null) lastRun.set(job, state.lastStartedAt / SECOND_MS);
      if (state.lastDurationMs !== null) duration.set(job, state.lastDurationMs / SECOND_MS);
      failed.set(job, state.lastOutcome === "failed" ? 1 : 0);
      lag.set(job, state.lagMs / SECOND_MS);
      stuck.set(job, state.stuck ? 1 : 0);
    }
  };
}

function createEvaluatorGauges(
  gauge: MakeGauge,
  total: MakeTotal,
): (evaluators: Figures["evaluators"]) => void {
  const labels = ["pool"] as const;
  const children = gauge("holdfast_evaluator_children", "Evaluator processes.", labels);
  const busy = gauge("holdfast_evaluator_busy", "Those at work.", labels);
  const waiting = gauge("holdfast_evaluator_waiting", "Evaluations that wait for one.", labels);
  const showRestarts = total(
    "holdfast_evaluator_restarts_total",
    "Processes that died, or were ended for their time or memory.",
    labels,
  );
  return (evaluators) => {
    showRestarts(evaluators.map(({ pool, restarts }) => [{ pool }, restarts]));
    for (const stats of evaluators) {
      const pool = { pool: stats.pool };
      children.set(pool, stats.size);
      busy.set(pool, stats.busy);
      waiting.set(pool, stats.waiting);
    }
  };
}

function createAuditGauges(gauge: MakeGauge): (audit: AuditOutcome | null) => void {
  const disagreements = gauge(
    "holdfast_audit_disagreements",
    "What the last audit of the books found; -1 before the first.",
  );
  const endedAt = gauge("holdfast_audit_last_timestamp_seconds", "When the last audit ended; 0 before it.");
  const duration = gauge("holdfast_audit_duration_seconds", "How long the last audit took.");
  return (audit) => {
    disagreements.set(audit?.disagreements ?? -1);
    endedAt.set((audit?.endedAt ?? 0) / SECOND_MS);
    duration.set((audit?.durationMs ?? 0) / SECOND_MS);
  };
}

function createProcessGauges(gauge: MakeGauge, total: MakeTotal): () => void {
  const resident = gauge("process_resident_memory_bytes", "Memory of the server's process.");
  const heap = gauge("process_heap_bytes", "Of it, what its objects take.");
  const showCpu = total("process_cpu_seconds_total", "Time on a processor.");
  const startedAt = gauge("process_start_time_seconds", "When it started.");
  startedAt.set(Date.now() / SECOND_MS - process.uptime());
  return () => {
    const { rss, heapUsed } = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    resident.set(rss);
    heap.set(heapUsed);
    showCpu([[{}, (user + system) / 1_000_000]]);
  };
}
